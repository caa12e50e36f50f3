package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

// gangdSystem is `gangd dev`: a controller and four node daemons.
type gangdSystem struct {
	bin, dir string
}

func (g *gangdSystem) name() string { return "gangd" }

func (g *gangdSystem) env() []string { return []string{"GANG_DIR=" + g.dir} }

func (g *gangdSystem) start(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, filepath.Join(g.bin, "gangd"), "dev", "--detach", "--isolate=false", "--nodes=4", "--gpus=8x80G", "--dir="+g.dir)
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
