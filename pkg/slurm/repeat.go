package slurm

import (
	"fmt"
	"time"

	"gangd/pkg/core/cmdline"
)

// Repeat is --iterate: it shows something every so many seconds until that fails, 0: once.
func Repeat(s cmdline.Streams, seconds int, show func() error) error {
	for {
		if err := show(); err != nil || seconds == 0 {
			return err
		}
		time.Sleep(time.Duration(seconds) * time.Second)
		fmt.Fprintln(s.Out)
	}
}
