// Command gadopt moves a login into a job of its user, for pam_exec; see man/gadopt.8.
package main

import (
	"os"

	"gangd/pkg/node/adopt"
)

func main() { os.Exit(adopt.Main(os.Args[1:], os.Stdout, os.Stderr)) }
