// Command gbarrier waits for the other ranks; see man/gbarrier.1.
package main

import (
	"gangd/pkg/client/cli"
	"gangd/pkg/wire/jobapi/jobhttp"
)

func main() { cli.Main(cli.NewGbarrier(func() (cli.Rank, error) { return jobhttp.NewClient() })) }
