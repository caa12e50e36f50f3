// Command gsubmit submits a script as a gang of ranks, see gsubmit(1).
package main

import (
	"gangd/pkg/program"
	"gangd/pkg/submit"
)

func main() { program.Main(submit.New()) }
