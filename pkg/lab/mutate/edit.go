package mutate

import (
	"cmp"
	"maps"
	"slices"
)

// edit replaces the bytes from at to end. Of edits at one place that replace nothing, those
// that close come first, the innermost (latest) foremost, then those that open, the outermost
// (earliest) foremost.
type edit struct {
	at, end int
	text    string
	closes  bool
	seq     int
}

// apply makes all edits of a file at once.
func apply(source []byte, edits []edit) []byte {
	edits = slices.Clone(edits)
	slices.SortStableFunc(edits, func(a, b edit) int {
		if a.at != b.at {
			return cmp.Compare(a.at, b.at)
		}
		if a.closes != b.closes {
			if a.closes {
				return -1
			}
			return 1
		}
		if a.closes {
			return cmp.Compare(b.seq, a.seq)
		}
		if d := cmp.Compare(a.seq, b.seq); d != 0 {
			return d
		}
		return cmp.Compare(a.end, b.end)
	})
	var out []byte
	done := 0
	for _, e := range edits {
		out = append(out, source[done:e.at]...)
		out = append(out, e.text...)
		done = e.end
	}
	return append(out, source[done:]...)
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
