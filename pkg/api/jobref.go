package api

import (
	"fmt"
	"strconv"
	"strings"
)

// maxRefRange bounds one "10-20" or "12_[0-9]": a typo must not become a billion requests.
const maxRefRange = 100000

// JobRef names a job as a person does: 12 (a job, or a whole array), 12_3 (one element),
// @ (my last job), @~1 (the one before).
type JobRef struct {
	ID    int64 // 0 with Last
	Index int   `bound:"-1.."` // element, -1: none
	Last  int   // 1: my last job, 2: the one before ...; 0: by ID
}

func (r JobRef) String() string {
	switch {
	case r.Last == 1:
		return "@"
	case r.Last > 1:
		return "@~" + strconv.Itoa(r.Last-1)
	case r.Index >= 0:
		return fmt.Sprintf("%d_%d", r.ID, r.Index)
	}
	return strconv.FormatInt(r.ID, 10)
}

// MarshalText writes what [ParseJobRef] reads.
func (r JobRef) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (r *JobRef) UnmarshalText(b []byte) error {
	v, err := ParseJobRef(string(b))
	if err == nil {
		*r = v
	}
	return err
}

// ParseJobRef reads one reference.
func ParseJobRef(s string) (JobRef, error) {
	if rest, ok := strings.CutPrefix(s, "@"); ok {
		if rest == "" {
			return JobRef{Index: -1, Last: 1}, nil
		}
		if n, ok := strings.CutPrefix(rest, "~"); ok {
			if v, err := parseID(n); err == nil && v < maxRefRange {
				return JobRef{Index: -1, Last: int(v) + 1}, nil
			}
		}
		return JobRef{}, Errorf(CodeInvalid, "invalid job id %q: my last job is @, the one before @~1", s)
	}
	id, index, element := strings.Cut(s, "_")
	v, err := parseID(id)
	if err != nil || v == 0 {
		job, component, _ := strings.Cut(s, "+")
		_, bad := parseID(component)
		if id, err := parseID(job); err == nil && bad == nil && id > 0 {
			return JobRef{}, &Error{Code: CodeInvalid, Message: fmt.Sprintf("%s is a component: those of a heterogeneous job are one gang", s),
				Hint: "give the id of all of it: " + job}
		}
		return JobRef{}, Errorf(CodeInvalid, "invalid job id %q: want 12, 12_3, 12_[1-3], 10-20 or @", s)
	}
	r := JobRef{ID: v, Index: -1}
	if element {
		i, err := parseID(index)
		if err != nil || i > 1<<30 {
			return JobRef{}, Errorf(CodeInvalid, "invalid array index %q in job id %q", index, s)
		}
		r.Index = int(i)
	}
	return r, nil
}

// ParseJobRefs reads what a person types for several: "12,14", "10-20", "12_[1-3,7]".
func ParseJobRefs(s string) ([]JobRef, error) {
	var out []JobRef
	for _, part := range splitRefs(s) {
		refs, err := parseRefPart(part)
		if err != nil {
			return nil, err
		}
		out = append(out, refs...)
	}
	if len(out) == 0 {
		return nil, Errorf(CodeInvalid, "empty job id: want 12, 12_3, 12_[1-3], 10-20 or @")
	}
	return out, nil
}

// splitRefs cuts at commas that are not inside brackets.
func splitRefs(s string) []string {
	var out []string
	depth, from := 0, 0
	for i, c := range s {
		switch c {
		case '[':
			depth++
		case ']':
			depth--
		case ',':
			if depth == 0 {
				out = append(out, s[from:i])
				from = i + 1
			}
		}
	}
	return append(out, s[from:])
}

func parseRefPart(s string) ([]JobRef, error) {
	if id, list, ok := strings.Cut(s, "_["); ok {
		base, err := ParseJobRef(id)
		if err != nil || !strings.HasSuffix(list, "]") {
			return nil, Errorf(CodeInvalid, "invalid job id %q: want 12_[1-3]", s)
		}
		var out []JobRef
		for _, r := range strings.Split(strings.TrimSuffix(list, "]"), ",") {
			r, by, stepped := strings.Cut(r, ":")
			step := int64(1)
			if stepped {
				if step, err = parseID(by); err != nil || step < 1 || step > maxRefRange {
					return nil, Errorf(CodeInvalid, "invalid step %q in %q: want 12_[0-100:10]", by, s)
				}
			}
			lo, hi, err := parseRange(r, s)
			if err != nil {
				return nil, err
			}
			for i := lo; i <= hi; i += step {
				out = append(out, JobRef{ID: base.ID, Index: int(i)})
			}
		}
		return out, nil
	}
	if strings.Contains(s, "-") {
		lo, hi, err := parseRange(s, s)
		if err != nil || lo == 0 {
			return nil, Errorf(CodeInvalid, "invalid range of job ids %q: want 10-20", s)
		}
		var out []JobRef
		for i := lo; i <= hi; i++ {
			out = append(out, JobRef{ID: i, Index: -1})
		}
		return out, nil
	}
	r, err := ParseJobRef(s)
	return []JobRef{r}, err
}

func parseRange(s, whole string) (lo, hi int64, err error) {
	a, b, isRange := strings.Cut(s, "-")
	lo, err = parseID(a)
	hi = lo
	if err == nil && isRange {
		hi, err = parseID(b)
	}
	if err != nil || hi < lo || hi-lo >= maxRefRange || hi > 1<<53 {
		return 0, 0, Errorf(CodeInvalid, "invalid range %q in %q: want FIRST-LAST of at most %d", s, whole, maxRefRange)
	}
	return lo, hi, nil
}

// parseID reads decimal digits only: no sign, no blank.
func parseID(s string) (int64, error) {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseInt(s, 10, 64)
}
