package cmdline

import (
	"fmt"
	"time"

	"gangd/pkg/slurm"
)

// Word is the Set of an option that takes one value.
func Word[T any](at func(*T) *string) func(*T, string, bool) error {
	return func(t *T, v string, _ bool) error { *at(t) = v; return nil }
}

// Words is the Set of an option that takes names with commas between them.
func Words[T any](at func(*T) *[]string) func(*T, string, bool) error {
	return func(t *T, v string, _ bool) error { *at(t) = Split(v); return nil }
}

// Flag is the Set of an option without a value.
func Flag[T any](at func(*T) *bool) func(*T, string, bool) error {
	return func(t *T, _ string, _ bool) error { *at(t) = true; return nil }
}

// Repeat is --iterate: it shows something every so many seconds until that fails, 0: once.
func Repeat(s slurm.Streams, seconds int, show func() error) error {
	for {
		if err := show(); err != nil || seconds == 0 {
			return err
		}
		time.Sleep(time.Duration(seconds) * time.Second)
		fmt.Fprintln(s.Out)
	}
}
