package cli

import (
	"cmp"
	"slices"
	"strings"

	"gangd/pkg/table/jobfield"
)

// The orders of squeue.
const (
	sortDefault = "P,t,-p"
	sortStart   = "S"
)

// sortKey is one key of -S.
type sortKey struct {
	*field
	down bool
}

// parseSort reads squeue's -S: letters of -o (or long names), each with + or - before it.
func parseSort(s string) ([]sortKey, error) {
	var keys []sortKey
	for _, part := range strings.Split(s, ",") {
		name := strings.TrimSpace(part)
		key := sortKey{}
		if rest, ok := strings.CutPrefix(name, "-"); ok {
			key.down, name = true, rest
		} else {
			name = strings.TrimPrefix(name, "+")
		}
		var err error
		switch {
		case name == "":
			return nil, Usagef("an empty key in the sort order %q: give letters of -o, as in 'P,t,-p'", s)
		case len(name) == 1:
			key.field, err = fieldByLetter(name[0])
		default:
			key.field, err = fieldByName(name)
		}
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// sortRows orders rows by the keys, then by id, so that two calls show the same order.
func sortRows(rows []row, keys []sortKey) {
	order := func(a, b row) int {
		for _, k := range keys {
			c := k.order(&a, &b)
			if k.down {
				c = -c
			}
			if c != 0 {
				return c
			}
		}
		return jobfield.CompareIDs(&a, &b)
	}
	slices.SortFunc(rows, order) // the id makes it total, so that nothing is left to stability
}

func (k sortKey) order(a, b *row) int {
	if k.Compare != nil {
		return k.Compare(a, b)
	}
	return cmp.Compare(k.Text(a), k.Text(b))
}
