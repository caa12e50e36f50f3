// Command gsubmit submits a script as a gang of ranks, see gsubmit(1).
package main

import "gangd/pkg/cli"

func main() { cli.Main(cli.NewGsubmit()) }
