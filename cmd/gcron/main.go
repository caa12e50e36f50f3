// Command gcron shows and changes cron tables, see gcron(1); as scrontab, too.
package main

import (
	"os"

	"gangd/pkg/client/gcron"
	"gangd/pkg/client/output"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/slurm"
)

func main() {
	slurm.Main(map[string]slurm.Runner{"scrontab": gcron.Scrontab})
	os.Exit(output.Run("gcron", gcron.Run, os.Args[1:], cmdline.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
