// Command gattach shows what a running step writes, see gattach(1); as sattach, too.
package main

import (
	"os"

	"gangd/pkg/client/grun"
)

func main() { os.Exit(grun.AttachMain()) }
