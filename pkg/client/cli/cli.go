package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"gangd/pkg/client/program"
	"gangd/pkg/client/submit"
)

// The names of pkg/client/program that every file here uses.
type (
	// UsageError is [program.UsageError].
	UsageError = program.UsageError
	// ExitError is [program.ExitError].
	ExitError = program.ExitError
)

// Main is [program.Main].
func Main(cmd *cobra.Command) { program.Main(cmd) }

// exitCode is [program.ExitCode].
func exitCode(err error) int { return program.ExitCode(err) }

// Usagef is [program.Usagef].
func Usagef(format string, args ...any) error { return program.Usagef(format, args...) }

func prepare(cmd *cobra.Command) { program.Prepare(cmd) }

// newGsubmit is the command gsubmit, for what treats all commands alike (completions).
func newGsubmit() *cobra.Command { return submit.New() }

// noArgs refuses arguments, in words that a person who forgot an option understands.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("%s takes no arguments, got %s", c.CommandPath(), strings.Join(args, " "))
}
