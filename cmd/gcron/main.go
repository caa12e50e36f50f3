// Command gcron shows and changes cron tables, see gcron(1); as scrontab, too.
package main

import (
	"gangd/pkg/client/gcron"
	"gangd/pkg/client/program"
	"gangd/pkg/slurm"
)

func main() {
	slurm.Main(map[string]slurm.Runner{"scrontab": gcron.Scrontab})
	program.Main(gcron.New())
}
