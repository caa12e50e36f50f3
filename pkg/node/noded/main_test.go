package noded

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

// program is gshim, built once for all tests, or what GANG_TEST_GSHIM names.
var program = os.Getenv("GANG_TEST_GSHIM")

// daemonEnv holds the options of a daemon as which this test program shall run instead.
const daemonEnv = "NODED_TEST_OPTIONS"

func TestMain(m *testing.M) {
	if text := os.Getenv(daemonEnv); text != "" {
		os.Exit(runDaemon(text))
	}
	dir, err := os.MkdirTemp("", "gn")
	if err != nil {
		panic(err)
	}
	if program == "" {
		program = filepath.Join(dir, "gshim")
		build := exec.Command("go", "build", "-o", program, "gangd/cmd/gshim")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build gshim: %v\n%s", err, out)
			os.Exit(1)
		}
	}
	_ = os.Chmod(dir, 0o755) // users run it, too
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// runDaemon is gnoded as a process of its own, to be killed.
func runDaemon(text string) int {
	var o Options
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	o.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := Run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
