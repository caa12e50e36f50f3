// Command gtable draws a table that another command hands it, as JSON on standard input; see
// pkg/client/drawn for why it is a program of its own.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"gangd/pkg/client/drawn"
)

func main() {
	var t drawn.Table
	err := json.NewDecoder(os.Stdin).Decode(&t)
	if err == nil {
		err = t.Draw(os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gtable:", err)
		os.Exit(1)
	}
}
