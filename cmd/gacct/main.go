// Command gacct shows the attempts of jobs; see man/gacct.1.
package main

import "gangd/pkg/cli"

func main() { cli.Main(cli.NewGacct()) }
