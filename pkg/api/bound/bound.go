// Package bound holds what crosses a border against the ranges of its fields: requests of
// people's programs and frames of nodes. Whoever sends a number may have made it up, and a
// number that nobody sends in earnest (a grace of 292 years, 2^63-1 bytes) must not reach
// arithmetic that it overflows.
//
// Every field has a range, also one that says nothing of it:
//
//	signed integers   0 to 2^53, the largest that JSON carries whole
//	unsigned integers 0 to 2^62
//	time.Duration     0 to 87600h (ten years): a sum of thirty still fits in 64 bits
//	time.Time         zero, or from 1970 to 9999
//	floats            finite, 0 to 2^53
//	strings           4,096 bytes, no control characters
//	[]byte            4 MiB
//	slices and maps   65,536 entries
//
// A tag says what differs, in parts that are separated by blanks:
//
//	bound:"-1.."       from -1 to the default end; "1..65536", "..87h", "-1ns..24h" alike
//	bound:"n=10000"    entries of a slice or a map, bytes of a []byte
//	bound:"len=1024"   bytes of a string, or of each string of a slice
//	bound:"text"       a string with any characters but NUL
//	bound:"any"        a string of at most 1 MiB with any characters: a person's words that
//	                   somebody else passes on, who must not be cut off for them
//
// The package knows no type of ours. Begin with [Check].
package bound

import (
	"cmp"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
)

const (
	maxInt      = 1 << 53
	maxUint     = 1 << 62 // a number that counts up from here has room
	maxDuration = 87600 * time.Hour
	maxString   = 4096
	maxAny      = 1 << 20
	maxEntries  = 65536
	maxBytes    = 4 << 20
)

var (
	durationType = reflect.TypeFor[time.Duration]()
	timeType     = reflect.TypeFor[time.Time]()
	oldest       = time.Unix(0, 0)
	newest       = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
)

// Error is a field out of its range.
type Error struct {
	Field string // as JSON names it: "spec.grace_ns", "members[3].epoch"
	Value string // what it is, cut to a line
	Want  string // what it may be
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s: %s is out of range: want %s", e.Field, e.Value, e.Want)
}

// Check holds all that v, a struct or a pointer to one, says against the ranges of its
// fields. The error is an [*Error] about the first field out of range.
func Check(v any) error {
	r := reflect.Indirect(reflect.ValueOf(v))
	if !r.IsValid() {
		return nil
	}
	if e := planOf(r.Type()).check(r); e != nil {
		e.Field = strings.TrimPrefix(e.Field, ".")
		return e
	}
	return nil
}

// rule checks one value; nil: it is in range. Field of the error is what follows the value's
// own name: empty, or ".name" and "[3]" of what lies within.
type rule func(reflect.Value) *Error

// plan is what is checked of a struct.
type plan struct {
	once   sync.Once
	fields []field
}

type field struct {
	index int
	name  string // ".name", empty of an embedded struct
	rule  rule
}

var plans sync.Map // reflect.Type -> *plan

func planOf(t reflect.Type) *plan {
	p, ok := plans.Load(t)
	if !ok {
		p, _ = plans.LoadOrStore(t, new(plan))
	}
	made := p.(*plan)
	made.once.Do(func() { made.fields = fieldsOf(t) })
	return made
}

func fieldsOf(t reflect.Type) []field {
	var out []field
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() && !f.Anonymous {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
			continue
		case f.Anonymous && name == "":
		case name == "":
			name = "." + f.Name
		default:
			name = "." + name
		}
		if r := ruleOf(f.Type, limitsOf(f.Tag.Get("bound"))); r != nil {
			out = append(out, field{index: i, name: name, rule: r})
		}
	}
	return out
}

func (p *plan) check(v reflect.Value) *Error {
	for _, f := range p.fields {
		if e := f.rule(v.Field(f.index)); e != nil {
			e.Field = f.name + e.Field
			return e
		}
	}
	return nil
}

// limits are the parts of a tag; empty and 0 stand for the defaults.
type limits struct {
	from, to string
	n, len   int
	text     bool
	any      bool
}

// limitsOf reads a tag. Tags are code: a wrong one ends the program the first time that the
// type is looked at, which a test of every type does.
func limitsOf(tag string) (l limits) {
	for part := range strings.FieldsSeq(tag) {
		key, value, _ := strings.Cut(part, "=")
		from, to, span := strings.Cut(part, "..")
		switch {
		case part == "text":
			l.text = true
		case part == "any":
			l.any = true
		case key == "n":
			l.n = number(value)
		case key == "len":
			l.len = number(value)
		case span:
			l.from, l.to = from, to
		default:
			panic("bound: a tag says " + strconv.Quote(tag))
		}
	}
	return l
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n <= 0 {
		panic("bound: a tag says " + strconv.Quote(s))
	}
	return n
}

// ruleOf is nil for what has no range: a bool, a type that reads itself from text.
func ruleOf(t reflect.Type, l limits) rule {
	switch t {
	case durationType:
		return span(l, 0, int64(maxDuration), func(n int64) string { return time.Duration(n).String() })
	case timeType:
		return instant
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return span(l, 0, maxInt, func(n int64) string { return strconv.FormatInt(n, 10) })
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return unsigned
	case reflect.Float32, reflect.Float64:
		return float
	case reflect.String:
		return words(l)
	case reflect.Pointer:
		return pointer(ruleOf(t.Elem(), l))
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return size(cmp.Or(l.n, maxBytes), "bytes", nil)
		}
		return size(cmp.Or(l.n, maxEntries), "entries", each(ruleOf(t.Elem(), l)))
	case reflect.Map:
		return size(cmp.Or(l.n, maxEntries), "entries", values(ruleOf(t.Key(), limits{}), ruleOf(t.Elem(), l)))
	case reflect.Struct:
		return func(v reflect.Value) *Error { return planOf(t).check(v) }
	case reflect.Bool:
		return nil
	}
	panic("bound: no range for " + t.String())
}

func span(l limits, low, high int64, text func(int64) string) rule {
	bound := func(s string, otherwise int64) int64 {
		if s == "" {
			return otherwise
		}
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			return n
		}
		d, err := time.ParseDuration(s)
		if err != nil {
			panic("bound: a tag says " + strconv.Quote(s))
		}
		return int64(d)
	}
	low, high = bound(l.from, low), bound(l.to, high)
	return func(v reflect.Value) *Error {
		if n := v.Int(); n < low || n > high {
			return &Error{Value: text(n), Want: text(low) + " to " + text(high)}
		}
		return nil
	}
}

func unsigned(v reflect.Value) *Error {
	if n := v.Uint(); n > maxUint {
		return &Error{Value: strconv.FormatUint(n, 10), Want: "0 to " + strconv.FormatInt(maxUint, 10)}
	}
	return nil
}

func float(v reflect.Value) *Error {
	if n := v.Float(); !(n >= 0 && n <= maxInt) {
		return &Error{Value: strconv.FormatFloat(n, 'g', -1, 64), Want: "0 to " + strconv.Itoa(maxInt)}
	}
	return nil
}

func instant(v reflect.Value) *Error {
	t := v.Interface().(time.Time)
	if !t.IsZero() && (t.Before(oldest) || t.After(newest)) {
		return &Error{Value: t.String(), Want: "a time from 1970 to 9999"}
	}
	return nil
}

func words(l limits) rule {
	most := cmp.Or(l.len, maxString)
	if l.any {
		most = maxAny
	}
	return func(v reflect.Value) *Error {
		s := v.String()
		if len(s) > most {
			return &Error{Value: fmt.Sprintf("%.40q with %d bytes", s, len(s)), Want: fmt.Sprintf("at most %d bytes", most)}
		}
		if l.any {
			return nil
		}
		for _, r := range s {
			if r == 0 || !l.text && unicode.IsControl(r) {
				return &Error{Value: fmt.Sprintf("%.60q", s), Want: "a text without control characters"}
			}
		}
		return nil
	}
}

func pointer(r rule) rule {
	if r == nil {
		return nil
	}
	return func(v reflect.Value) *Error {
		if v.IsNil() {
			return nil
		}
		return r(v.Elem())
	}
}

// size bounds the entries of v, and then looks at them.
func size(most int, of string, within rule) rule {
	return func(v reflect.Value) *Error {
		if v.Len() > most {
			return &Error{Value: fmt.Sprintf("%d %s", v.Len(), of), Want: fmt.Sprintf("at most %d", most)}
		}
		if within == nil {
			return nil
		}
		return within(v)
	}
}

func each(r rule) rule {
	if r == nil {
		return nil
	}
	return func(v reflect.Value) *Error {
		for i := range v.Len() {
			if e := r(v.Index(i)); e != nil {
				e.Field = "[" + strconv.Itoa(i) + "]" + e.Field
				return e
			}
		}
		return nil
	}
}

func values(key, value rule) rule {
	return func(v reflect.Value) *Error {
		for it := v.MapRange(); it.Next(); {
			for _, part := range []struct {
				rule rule
				v    reflect.Value
			}{{key, it.Key()}, {value, it.Value()}} {
				if part.rule == nil {
					continue
				}
				if e := part.rule(part.v); e != nil {
					e.Field = fmt.Sprintf("[%.40q]", it.Key()) + e.Field
					return e
				}
			}
		}
		return nil
	}
}
