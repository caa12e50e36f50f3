package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// BenchmarkProcess measures the whole program as a shell starts it.
func BenchmarkProcess(b *testing.B) {
	dir := b.TempDir()
	bin := filepath.Join(dir, "gsubmit")
	build := exec.Command("go", "build", "-o", bin, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Skipf("%v: %s", err, out)
	}
	job := filepath.Join(dir, "job.sh")
	if err := os.WriteFile(job, []byte("#!/bin/bash\n#GANG --size=4 --gpus-per-rank=1\ntrue\n"), 0o644); err != nil {
		b.Fatal(err)
	}
	f, err := startFake()
	if err != nil {
		b.Fatal(err)
	}
	defer f.stop()
	for _, c := range []struct {
		name string
		args []string
	}{{"version", []string{"--version"}}, {"submit", []string{"--parsable", job}}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				cmd := exec.Command(bin, c.args...)
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "GANG_DIR="+f.dir)
				if out, err := cmd.CombinedOutput(); err != nil {
					b.Fatalf("%v: %s", err, out)
				}
			}
		})
	}
}
