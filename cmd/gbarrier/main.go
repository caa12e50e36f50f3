// Command gbarrier waits for the other ranks; see man/gbarrier.1.
package main

import "gangd/pkg/cli"

func main() { cli.Main(cli.NewGbarrier()) }
