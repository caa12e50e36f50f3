package dev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// glance is how often a foreground cluster looks whether it was stopped from elsewhere.
const glance = time.Second

// Watch stays until ctx ends, and then stops the cluster; or until someone else stopped
// it. A daemon that ends in between is named on w and left to be started again.
func (c *Cluster) Watch(ctx context.Context, w io.Writer) error {
	tick := time.NewTicker(glance)
	defer tick.Stop()
	told := map[string]bool{}
	for {
		select {
		case <-ctx.Done():
			return Stop(c.dir)
		case <-tick.C:
		}
		if _, err := os.Stat(c.pid(controller)); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		for _, d := range c.daemons {
			select {
			case <-d.done:
				if !told[d.name] {
					fmt.Fprintf(w, "%s ended: %v; start it again: gangd dev --restart=%s --dir=%s\n", d.name, d.err, d.name, Quote(c.dir))
				}
				told[d.name] = true
			default:
			}
		}
	}
}
