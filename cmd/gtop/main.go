// Command gtop shows queue, cards, jobs and their output on a terminal, as they change; see man/gtop.1.
package main

import "gangd/pkg/client/cli"

func main() { cli.Main(cli.NewGtop()) }
