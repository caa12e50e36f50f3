package jobfield

import (
	"strings"

	"gangd/pkg/core/table/column"
)

// LineLetters are the fields that need no more of a job than [api.LinesType] has.
const LineLetters = "AiFKjPutTMDNrRpQVl"

// InLines reports whether the short form of each job is enough for a line and its order.
func InLines(l *column.Line[*Row], keys []column.Key[*Row]) bool {
	for _, c := range l.Columns {
		if c.Letter == 0 || strings.IndexByte(LineLetters, c.Letter) < 0 {
			return false
		}
	}
	for _, k := range keys {
		if k.Letter == 0 || strings.IndexByte(LineLetters, k.Letter) < 0 {
			return false
		}
	}
	return true
}
