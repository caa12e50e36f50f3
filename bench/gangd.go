package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"gangd/pkg/api"
)

// gangdSystem is `gangd dev`: a controller and four node daemons.
type gangdSystem struct {
	title, bin, dir string
	args            []string // of gangd dev, besides the usual ones
	installed       bool     // bin is a copy already
}

func (g *gangdSystem) name() string { return g.title }

func (g *gangdSystem) env() []string { return []string{"GANG_DIR=" + g.dir} }

// install copies the programs, as an installation does, and has the copies measured. What a linker has just written lies
// in the page cache in single pages, and starts a quarter slower than the same program installed.
func (g *gangdSystem) install() error {
	if g.installed {
		return nil
	}
	g.installed = true
	entries, err := os.ReadDir(g.bin)
	if err != nil {
		return err
	}
	to := g.dir + "-bin"
	if err := os.Mkdir(to, 0o755); err != nil {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		b, err := os.ReadFile(filepath.Join(g.bin, e.Name()))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, e.Name()), b, 0o755); err != nil {
			return err
		}
	}
	g.bin = to
	return nil
}

func (g *gangdSystem) start(ctx context.Context) error {
	if err := g.install(); err != nil {
		return err
	}
	bin := filepath.Join(g.bin, "gangd")
	args := append([]string{"dev", "--detach", "--nodes=4", "--gpus=8x80G", "--dir=" + g.dir}, g.args...)
	// One that is too old to know of it does not isolate nodes.
	if help, _ := exec.CommandContext(ctx, bin, "dev", "--help").Output(); bytes.Contains(help, []byte("--isolate")) {
		args = append(args, "--isolate=false")
	}
	cmd := exec.CommandContext(ctx, bin, args...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

func (g *gangdSystem) stop() {
	_ = exec.Command(filepath.Join(g.bin, "gangd"), "dev", "--stop", "--dir="+g.dir).Run()
}

func (g *gangdSystem) submit(j job) []string {
	args := []string{filepath.Join(g.bin, "gsubmit"), "--parsable", "-o", "/dev/null", fmt.Sprintf("--size=%d", j.ranks), "--ranks-per-node=1"}
	if j.array > 0 {
		args = append(args, fmt.Sprintf("--array=1-%d", j.array))
	}
	return append(args, j.script)
}

func (g *gangdSystem) queue() []string {
	return []string{filepath.Join(g.bin, "gqueue"), "-h", "-r", "-o", "%i"}
}

// killLeader ends the controller that leads, the hard way, and gives its name.
func (g *gangdSystem) killLeader(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(g.bin, "gctl"), "ping", "--json")
	cmd.Env = append(os.Environ(), g.env()...)
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("gctl ping: %w", err)
	}
	var p api.PingReply
	if err := json.Unmarshal(out, &p); err != nil {
		return "", fmt.Errorf("gctl ping: %w", err)
	}
	for _, name := range []string{"gangd", "gangd2"} {
		b, _ := os.ReadFile(filepath.Join(g.dir, "run", name+".pid"))
		if f := strings.Fields(string(b)); len(f) > 0 && f[0] == strconv.Itoa(p.PID) {
			return name, syscall.Kill(p.PID, syscall.SIGKILL)
		}
	}
	return "", fmt.Errorf("process %d leads, which is none of the cluster's", p.PID)
}
