package script

import (
	"strconv"
	"strings"
)

// maxBytes bounds every size: more is beyond any node, and the controller takes no more.
const maxBytes = 64 << 40

const sizeForms = "write 24G, 24GB, 1.5T, 512M or a plain number of MiB"

// ParseSize reads an amount of memory in bytes: 24G 24GB 24gb 24GiB 1.5T, and as in Slurm
// a plain number is MiB. All units are powers of 1024, as in Slurm and on the cards' data
// sheets.
func ParseSize(s string) (int64, error) {
	t := strings.TrimSpace(s)
	if t == "" {
		return 0, bad("the size is empty", sizeForms)
	}
	if t[0] == '-' {
		return 0, bad("a size can't be negative", sizeForms)
	}
	n := 0
	for n < len(t) && (t[n] >= '0' && t[n] <= '9' || t[n] == '.') {
		n++
	}
	if n == 0 {
		return 0, bad("not a size", sizeForms)
	}
	unit, ok := sizeUnit(strings.ToLower(strings.TrimSpace(t[n:])))
	if !ok {
		return 0, bad("unknown unit "+strconv.Quote(strings.TrimSpace(t[n:])), sizeForms)
	}
	f, err := strconv.ParseFloat(t[:n], 64)
	if err != nil {
		return 0, bad("not a size", sizeForms)
	}
	if f > float64(maxBytes/unit) {
		return 0, bad("larger than 64T", sizeForms)
	}
	return int64(f * float64(unit)), nil
}

func sizeUnit(s string) (int64, bool) {
	if s == "" {
		return 1 << 20, true
	}
	if s == "b" {
		return 1, true
	}
	i := strings.IndexByte("kmgtp", s[0])
	if i < 0 {
		return 0, false
	}
	switch s[1:] {
	case "", "b", "ib":
		return 1 << (10 * (i + 1)), true
	}
	return 0, false
}

// formatSize writes bytes in the largest unit that divides them.
func formatSize(n int64) string {
	for i, u := range "PTGMK" {
		if unit := int64(1) << (10 * (5 - i)); n >= unit && n%unit == 0 {
			return strconv.FormatInt(n/unit, 10) + string(u)
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}
