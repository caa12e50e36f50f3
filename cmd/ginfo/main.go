// Command ginfo shows nodes and cards; see man/ginfo.1.
package main

import "gangd/pkg/cli"

func main() { cli.Main(cli.NewGinfo()) }
