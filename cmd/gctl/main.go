// Command gctl shows and changes jobs and nodes; see man/gctl.1.
package main

import "gangd/pkg/cli"

func main() { cli.Main(cli.NewGctl()) }
