package output

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
)

// Ranks prints what several ranks write, whole lines, each behind the number of its rank.
type Ranks struct {
	W    io.Writer
	Size int // ranks of the gang, 0: not known
	// Paint is the number of a rank as it is shown; nil: as it is.
	Paint func(rank int, lead string) string

	rest map[int][]byte // of each rank a line without its end
}

// Print prints the whole lines of what a rank has written. Data of nil is the last of it: what is left of a line is printed too.
func (r *Ranks) Print(rank int, data []byte) error {
	all := append(r.rest[rank], data...)
	at := bytes.LastIndexByte(all, '\n') + 1
	if data == nil {
		at = len(all)
	}
	if r.rest == nil {
		r.rest = map[int][]byte{}
	}
	r.rest[rank] = bytes.Clone(all[at:])
	return r.Lines(rank, all[:at])
}

// Lines prints lines of a rank, the last of which may have no end.
func (r *Ranks) Lines(rank int, lines []byte) error {
	lead := fmt.Sprintf("%*d:", len(strconv.Itoa(max(r.Size, 1)-1)), rank)
	if r.Paint != nil {
		lead = r.Paint(rank, lead)
	}
	var out []byte
	for line := range bytes.Lines(lines) {
		out = append(append(append(out, lead...), ' '), line...)
		if !bytes.HasSuffix(line, []byte{'\n'}) {
			out = append(out, '\n')
		}
	}
	_, err := r.W.Write(out)
	return err
}
