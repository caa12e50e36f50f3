// Command gckpt stores and reads the checkpoint of a rank; see man/gckpt.1.
package main

import (
	"gangd/pkg/client/cli"
	"gangd/pkg/wire/jobapi/jobhttp"
)

func main() { cli.Main(cli.NewGckpt(func() (cli.Rank, error) { return jobhttp.NewClient() })) }
