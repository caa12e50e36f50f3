// Command gcancel cancels or signals jobs; see man/gcancel.1.
package main

import "gangd/pkg/cli"

func main() { cli.Main(cli.NewGcancel()) }
