// Command gangsim plays a trace of jobs on the scheduler; see man/gangsim.1.
package main

import (
	"gangd/pkg/client/program"
	"gangd/pkg/lab/gangsim"
)

func main() { program.Main(gangsim.New()) }
