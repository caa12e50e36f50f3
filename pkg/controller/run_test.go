package controller

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/controller/config"
)

// siteConfig is a configuration of a state directory of its own, with what is set.
func siteConfig(t *testing.T, set ...string) *config.Controller {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "gangd.toml")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.LoadController(file, append([]string{"single_user=true", "state_dir=" + filepath.Join(dir, "state"), "socket=" + filepath.Join(dir, "run", "s")}, set...))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// run is Run, given up after a time that no start takes.
func run(t *testing.T, cfg *config.Controller) error {
	t.Helper()
	umask := unix.Umask(0o077)
	t.Cleanup(func() { unix.Umask(umask) })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, cfg, Options{Log: slog.New(slog.DiscardHandler)}) }()
	err := <-ended
	if ctx.Err() != nil {
		t.Errorf("it was still there: %v", err)
	}
	return err
}

// TestSecondOnOneSocket: whoever starts another gangd on a socket that one has is told so by the socket's name, and who it is; the socket
// stays, and nothing is made for the other.
func TestSecondOnOneSocket(t *testing.T) {
	first, second := siteConfig(t), siteConfig(t)
	second.Socket = first.Socket
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	umask := unix.Umask(0o077)
	defer unix.Umask(umask)
	go func() { ended <- Run(ctx, first, Options{Log: slog.New(slog.DiscardHandler)}) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	var before os.FileInfo
	for give := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		var err error
		if before, err = os.Stat(first.Socket); err == nil {
			break
		}
		if time.Now().After(give) {
			t.Fatal(err)
		}
	}
	err := run(t, second)
	if want := fmt.Sprintf("socket %s is in use by another gangd, process %d", first.Socket, os.Getpid()); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	if after, err := os.Stat(first.Socket); err != nil || !os.SameFile(before, after) {
		t.Errorf("another socket is there: %v", err)
	}
	if _, err := os.Stat(second.StateDir); err == nil {
		t.Error("a state directory was made for the second")
	}
}

// TestAddressThatIsTaken: a start ends with what is wrong with an address, whatever else has begun, and leaves the socket alone.
func TestAddressThatIsTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, key := range []string{"listen", "web_listen", "metrics_listen"} {
		set := []string{key + "=" + l.Addr().String()}
		if key != "web_listen" {
			set = append(set, "web_listen=127.0.0.1:0") // with a page there is something that runs until it is told to end
		}
		cfg := siteConfig(t, set...)
		if err := run(t, cfg); err == nil || !strings.Contains(err.Error(), l.Addr().String()) {
			t.Errorf("%s: %v", key, err)
		}
		if _, err := os.Lstat(cfg.Socket); err == nil {
			t.Errorf("%s: the socket was taken", key)
		}
	}
}
