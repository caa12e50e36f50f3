package column

import (
	"cmp"
	"slices"
	"strings"
)

// Key is one key of -S.
type Key[R any] struct {
	*Field[R]
	Down bool
}

// Keys reads the order of -S: letters of -o, each with + or - before it, commas between
// them; text that is no letter is given back as bad.
func (s *Set[R]) Keys(order string) (keys []Key[R], bad string) {
	down := false
	for i := range len(order) {
		switch c := order[i]; c {
		case ',', '+', ' ':
			down = false
		case '-':
			down = true
		default:
			f := s.Letter(c)
			if f == nil {
				return keys, order[i:]
			}
			keys = append(keys, Key[R]{f, down})
			down = false
		}
	}
	return keys, ""
}

// Sort orders records by the keys; records that are alike keep their order.
func Sort[R any](records []R, keys []Key[R]) {
	slices.SortStableFunc(records, func(a, b R) int {
		for _, k := range keys {
			c := k.order(a, b)
			if k.Down {
				c = -c
			}
			if c != 0 {
				return c
			}
		}
		return 0
	})
}

func (k *Key[R]) order(a, b R) int {
	if k.Compare != nil {
		return k.Compare(a, b)
	}
	return cmp.Compare(k.Text(a), k.Text(b))
}

// Has reports whether a line shows a field of one of the letters.
func (l *Line[R]) Has(letters string) bool {
	return slices.ContainsFunc(l.Columns, func(c Column[R]) bool {
		return c.Letter != 0 && strings.IndexByte(letters, c.Letter) >= 0
	})
}
