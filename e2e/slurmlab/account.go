package slurmlab

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

// account starts a mariadbd with an empty database and slurmdbd on it, and makes the
// cluster known there before slurmctld asks.
func (s *Slurm) account(ctx context.Context) error {
	data := filepath.Join(s.o.Dir, "db")
	sock := filepath.Join(s.o.Dir, "db.sock")
	out, err := exec.Command("mariadb-install-db", "--no-defaults", "--user=root", "--datadir="+data,
		"--auth-root-authentication-method=normal", "--skip-test-db").CombinedOutput()
	if err != nil {
		return fmt.Errorf("mariadb-install-db: %w: %s", err, out)
	}
	if err := s.daemon("mariadbd", "--no-defaults", "--user=root", "--datadir="+data, "--socket="+sock,
		"--bind-address=127.0.0.1", fmt.Sprintf("--port=%d", s.ports[s.o.Nodes+2]), "--innodb-flush-log-at-trx-commit=0",
		"--pid-file="+s.o.Dir+"/db.pid", "--log-error="+s.o.Dir+"/db.log"); err != nil {
		return err
	}
	make := "create database lab; create user 'lab'@'127.0.0.1' identified by 'lab'; create user 'lab'@'localhost' identified by 'lab'; " +
		"grant all on lab.* to 'lab'@'127.0.0.1'; grant all on lab.* to 'lab'@'localhost'"
	if err := until(ctx, "mariadbd's tables", func() bool {
		return exec.Command("mariadb", "--no-defaults", "--user=root", "--socket="+sock, "-e", make).Run() == nil
	}); err != nil {
		return err
	}
	if err := s.daemon("slurmdbd", "-D"); err != nil {
		return err
	}
	return until(ctx, "slurmdbd's answers", func() bool {
		return s.command("sacctmgr", "-i", "add", "cluster", "gangd").Run() == nil
	})
}
