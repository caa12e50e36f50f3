// Command gangsim plays a trace of jobs on the scheduler; see man/gangsim.1.
package main

import (
	"gangd/pkg/lab/gangsim"
	"gangd/pkg/program"
)

func main() { program.Main(gangsim.New()) }
