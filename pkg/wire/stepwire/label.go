package stepwire

import (
	"bytes"
	"fmt"
	"strconv"
)

// Label puts the number of a task, one of so many, before each line.
func Label(task uint32, tasks int, data []byte) []byte {
	prefix := fmt.Sprintf("%*d: ", len(strconv.Itoa(tasks-1)), task)
	var out []byte
	for len(data) > 0 {
		line, rest, found := bytes.Cut(data, []byte("\n"))
		out = append(append(append(out, prefix...), line...), '\n')
		if !found {
			break
		}
		data = rest
	}
	return out
}
