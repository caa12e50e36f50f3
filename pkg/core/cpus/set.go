package cpus

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// Set is numbers of CPUs, ascending, each once.
type Set []int

// MaxCPU bounds the number of a CPU: more than any kernel is built for.
const MaxCPU = 1 << 16

// Of makes a set of numbers in any order.
func Of(ids ...int) Set {
	s := slices.Clone(ids)
	slices.Sort(s)
	return slices.Compact(s)
}

// Parse reads a list as the kernel writes it: "0-3,8", empty for none.
func Parse(text string) (Set, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, nil
	}
	var out []int
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		a, err := number(from)
		b := a
		if err == nil && isRange {
			b, err = number(to)
		}
		if err != nil || b < a {
			return nil, fmt.Errorf("%q is no list of CPUs: want 0-3,8", text)
		}
		for id := a; id <= b; id++ {
			out = append(out, id)
		}
		if len(out) > 2*MaxCPU {
			return nil, fmt.Errorf("a list of more than %d CPUs", MaxCPU)
		}
	}
	return Of(out...), nil
}

func number(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n >= MaxCPU || text[0] == '+' {
		return 0, fmt.Errorf("%q is no number of a CPU", text)
	}
	return n, nil
}

// String writes it as the kernel does: "0-3,8".
func (s Set) String() string {
	var b strings.Builder
	for i := 0; i < len(s); {
		end := i
		for end+1 < len(s) && s[end+1] == s[end]+1 {
			end++
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(s[i]))
		if end > i {
			b.WriteString("-" + strconv.Itoa(s[end]))
		}
		i = end + 1
	}
	return b.String()
}

// Mask writes it as Slurm does: 0xF0.
func (s Set) Mask() string {
	var m big.Int
	for _, id := range s {
		m.SetBit(&m, id, 1)
	}
	return fmt.Sprintf("0x%X", &m)
}

// parseMask reads a mask: hexadecimal, with 0x or without.
func parseMask(text string) (Set, error) {
	digits := strings.TrimPrefix(strings.ToLower(text), "0x")
	var m big.Int
	if _, ok := m.SetString(digits, 16); !ok || m.Sign() < 0 || m.BitLen() > MaxCPU {
		return nil, fmt.Errorf("%q is no mask of CPUs: want 0xF0", text)
	}
	var out Set
	for id := range m.BitLen() {
		if m.Bit(id) == 1 {
			out = append(out, id)
		}
	}
	return out, nil
}

// Has reports whether a CPU is in it.
func (s Set) Has(id int) bool {
	_, found := slices.BinarySearch(s, id)
	return found
}

// And is what both have.
func (s Set) And(o Set) Set {
	return slices.DeleteFunc(slices.Clone(s), func(id int) bool { return !o.Has(id) })
}

// Or is what one of them has.
func (s Set) Or(o Set) Set { return Of(append(slices.Clone(s), o...)...) }
