package auth

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// TestKeepRenewedEnds: it looks again and again, and its owner can stop it.
func TestKeepRenewedEnds(t *testing.T) {
	dir := t.TempDir() // not joined: every look is a warning
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		looks := new(counter)
		done := make(chan struct{})
		go func() {
			KeepRenewed(ctx, dir, func() []string { return []string{"127.0.0.1:1"} }, slog.New(looks))
			close(done)
		}()
		time.Sleep(3*renewCheck + time.Minute)
		cancel()
		<-done
		if looks.n != 4 {
			t.Errorf("%d looks in three hours", looks.n)
		}
	})
}

// counter counts log lines.
type counter struct{ n int }

func (c *counter) Enabled(context.Context, slog.Level) bool  { return true }
func (c *counter) Handle(context.Context, slog.Record) error { c.n++; return nil }
func (c *counter) WithAttrs([]slog.Attr) slog.Handler        { return c }
func (c *counter) WithGroup(string) slog.Handler             { return c }
