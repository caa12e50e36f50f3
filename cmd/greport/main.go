// Command greport reports what was used from the ledger; see man/greport.1.
package main

import "gangd/pkg/cli"

func main() { cli.Main(cli.NewGreport()) }
