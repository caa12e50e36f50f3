package hostlist

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Compare orders names naturally: runs of digits by value, so that n2 comes before n10;
// then plainly, so that names that differ only in padding still have an order.
func Compare(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		dx, dy := digits(x), digits(y)
		if dx == 0 || dy == 0 {
			if x[0] != y[0] {
				return cmp.Compare(x[0], y[0])
			}
			x, y = x[1:], y[1:]
			continue
		}
		nx, ny := strings.TrimLeft(x[:dx], "0"), strings.TrimLeft(y[:dy], "0")
		if c := cmp.Or(cmp.Compare(len(nx), len(ny)), cmp.Compare(nx, ny)); c != 0 {
			return c
		}
		x, y = x[dx:], y[dy:]
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(a, b))
}

// digits is the length of the run of digits that s begins with.
func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// Compress writes names as the shortest list with one bracket each, sorted naturally,
// without repeats: n[1-3,7],login.
func Compress(names []string) string {
	sorted := slices.Clone(names)
	slices.SortFunc(sorted, Compare)
	sorted = slices.Compact(sorted)
	var groups []*group
	byKey := make(map[groupKey]*group)
	for _, name := range sorted {
		key, number, ok := split(name)
		if !ok {
			groups = append(groups, &group{groupKey: groupKey{prefix: name}})
			continue
		}
		g := byKey[key]
		if key.width == 0 {
			// 10 continues 08, 09: a number as long as the padded ones is one of them.
			wide := groupKey{key.prefix, key.suffix, len(strconv.Itoa(number))}
			g = cmp.Or(byKey[wide], g)
		}
		if g == nil {
			g = &group{groupKey: key}
			byKey[key] = g
			groups = append(groups, g)
		}
		g.numbers = append(g.numbers, number)
	}
	var b strings.Builder
	for i, g := range groups {
		if i > 0 {
			b.WriteByte(',')
		}
		g.write(&b)
	}
	return b.String()
}

// groupKey is what the names of one bracket share. Width is the padded width; 0 for
// numbers without padding, whatever their length.
type groupKey struct {
	prefix, suffix string
	width          int
}

type group struct {
	groupKey
	numbers []int
}

// split cuts a name at its last number.
func split(name string) (groupKey, int, bool) {
	end := len(name)
	for end > 0 && digits(name[end-1:]) == 0 {
		end--
	}
	from := end
	for from > 0 && end-from < maxDigits && digits(name[from-1:]) > 0 {
		from--
	}
	if from == end {
		return groupKey{}, 0, false
	}
	number, err := strconv.Atoi(name[from:end])
	if err != nil {
		return groupKey{}, 0, false
	}
	key := groupKey{prefix: name[:from], suffix: name[end:]}
	if name[from] == '0' && end-from > 1 {
		key.width = end - from
	}
	return key, number, true
}

func (g *group) write(b *strings.Builder) {
	b.WriteString(g.prefix)
	switch len(g.numbers) {
	case 0:
		return
	case 1:
		b.WriteString(pad(g.numbers[0], g.width))
	default:
		b.WriteByte('[')
		slices.Sort(g.numbers)
		writeRanges(b, g.numbers, g.width)
		b.WriteByte(']')
	}
	b.WriteString(g.suffix)
}

// Ranges writes numbers as 0-3,7, in the order in which they come.
func Ranges(numbers []int) string {
	var b strings.Builder
	writeRanges(&b, numbers, 0)
	return b.String()
}

func writeRanges(b *strings.Builder, numbers []int, width int) {
	for i := 0; i < len(numbers); {
		j := i
		for j+1 < len(numbers) && numbers[j+1] == numbers[j]+1 {
			j++
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(pad(numbers[i], width))
		if j > i {
			b.WriteByte('-')
			b.WriteString(pad(numbers[j], width))
		}
		i = j + 1
	}
}
