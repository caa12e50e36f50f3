// Command grun runs tasks in an allocation, see grun(1); as srun and salloc, too.
package main

import (
	"os"

	"gangd/pkg/grun"
)

func main() { os.Exit(grun.Main()) }
