package script

import (
	"slices"
	"strconv"
	"strings"

	"gangd/pkg/api"
)

const arrayForms = "write --array=0-15, --array=0-15%4 (four at a time), --array=1,3,5-9 or --array=0-100:10"

// maxArrayIndex bounds one index, so that it fits everywhere an index is kept.
const maxArrayIndex = 1<<30 - 1

// parseArray reads 0-15, 0-15%4, 1,3,5-9, 1-10:2. Indices come sorted, each once.
func parseArray(s string) (*api.Array, error) {
	list, limit, hasLimit := strings.Cut(strings.TrimSpace(s), "%")
	a := new(api.Array)
	if hasLimit {
		n, err := strconv.Atoi(limit)
		if err != nil || !digits(limit) || n < 1 {
			return nil, bad("the limit behind % must be 1 or more", arrayForms)
		}
		a.Limit = n
	}
	if list == "" {
		return nil, bad("no index", arrayForms)
	}
	for _, part := range strings.Split(strings.Trim(list, "[]"), ",") {
		lo, hi, step, err := arrayRange(part)
		if err != nil {
			return nil, err
		}
		if n := (hi-lo)/step + 1 + len(a.Indices); n > api.MaxArraySize {
			return nil, bad("asks for "+strconv.Itoa(n)+" elements, at most "+strconv.Itoa(api.MaxArraySize)+" are accepted",
				"split it into several arrays")
		}
		for i := lo; i <= hi; i += step {
			a.Indices = append(a.Indices, i)
		}
	}
	slices.Sort(a.Indices)
	a.Indices = slices.Compact(a.Indices)
	return a, nil
}

// arrayRange reads 3, 1-10 and 1-10:2.
func arrayRange(s string) (lo, hi, step int, err error) {
	step = 1
	span, by, hasStep := strings.Cut(s, ":")
	if hasStep {
		if step, err = index(by); err != nil || step < 1 {
			return 0, 0, 0, bad("the step in "+strconv.Quote(s)+" must be 1 or more", arrayForms)
		}
	}
	a, b, isRange := strings.Cut(span, "-")
	if lo, err = index(a); err != nil {
		return 0, 0, 0, bad(strconv.Quote(s)+" is not an index or a range of indices", arrayForms)
	}
	hi = lo
	if isRange {
		if hi, err = index(b); err != nil {
			return 0, 0, 0, bad(strconv.Quote(s)+" is not an index or a range of indices", arrayForms)
		}
	}
	if hi < lo {
		return 0, 0, 0, bad("the range "+strconv.Quote(span)+" runs backwards", "write "+b+"-"+a)
	}
	return lo, hi, step, nil
}

func index(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || !digits(s) || n > maxArrayIndex {
		return 0, strconv.ErrSyntax
	}
	return n, nil
}

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
