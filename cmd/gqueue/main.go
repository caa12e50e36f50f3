// Command gqueue shows the queue; see man/gqueue.1.
package main

import "gangd/pkg/cli"

func main() { cli.Main(cli.NewGqueue()) }
