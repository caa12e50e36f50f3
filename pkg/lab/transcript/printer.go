package transcript

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Printer writes values in a line: only what is not zero, moments as the time since one of them.
type Printer struct {
	Since time.Time
	Skip  []reflect.Type // not written at all
}

// Field is a value of a name.
type Field struct{ Name, Value string }

// Value is a value in a line, empty where it is zero.
func (p *Printer) Value(v any) string { return p.value(reflect.ValueOf(v)) }

// Fields are those of a struct that are not zero, what is embedded among them.
func (p *Printer) Fields(v any) []Field {
	r := reflect.ValueOf(v)
	for r.Kind() == reflect.Pointer {
		if r.IsNil() {
			return nil
		}
		r = r.Elem()
	}
	return p.fields(r)
}

func (p *Printer) fields(r reflect.Value) (out []Field) {
	for i := range r.NumField() {
		f := r.Type().Field(i)
		v := r.Field(i)
		if f.Anonymous {
			if v.Kind() == reflect.Pointer && !v.IsNil() {
				v = v.Elem()
			}
			if v.Kind() == reflect.Struct && !slices.Contains(p.Skip, v.Type()) {
				out = append(out, p.fields(v)...)
				continue
			}
		}
		if !f.IsExported() {
			continue
		}
		if s := p.value(v); s != "" {
			out = append(out, Field{f.Name, s})
		}
	}
	return out
}

var (
	timeType     = reflect.TypeFor[time.Time]()
	durationType = reflect.TypeFor[time.Duration]()
)

func (p *Printer) value(v reflect.Value) string {
	if !v.IsValid() || slices.Contains(p.Skip, v.Type()) || v.IsZero() {
		return ""
	}
	switch v.Type() {
	case timeType:
		if t := v.Interface().(time.Time); !t.IsZero() {
			return t.Sub(p.Since).String()
		}
		return ""
	case durationType:
		return fmt.Sprint(v.Interface())
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if e := v.Elem(); e.Kind() != reflect.Struct && e.IsZero() {
			return fmt.Sprintf("%v", e) // of a pointer the zero says something
		}
		return cmp.Or(p.value(v.Elem()), "{}")
	case reflect.Struct:
		var parts []string
		for _, f := range p.fields(v) {
			parts = append(parts, f.Name+":"+f.Value)
		}
		if parts == nil {
			return ""
		}
		return "{" + strings.Join(parts, " ") + "}"
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return fmt.Sprintf("%q", v.Bytes())
		}
		if s, ok := v.Interface().(fmt.Stringer); ok {
			return "[" + s.String() + "]"
		}
		return p.list(v)
	case reflect.Map:
		var parts []string
		for _, k := range v.MapKeys() {
			parts = append(parts, p.element(k)+":"+p.element(v.MapIndex(k)))
		}
		slices.Sort(parts)
		return "[" + strings.Join(parts, " ") + "]"
	case reflect.String:
		s := v.String()
		if strings.ContainsAny(s, " \n\"[]{}:") {
			return fmt.Sprintf("%q", s)
		}
		return s
	case reflect.Func, reflect.Chan:
		return ""
	}
	return fmt.Sprint(v.Interface())
}

// list writes equal neighbours once, with their number.
func (p *Printer) list(v reflect.Value) string {
	var parts []string
	for i := 0; i < v.Len(); {
		e, n := p.element(v.Index(i)), 1
		for i+n < v.Len() && len(e) > 2 && p.element(v.Index(i+n)) == e {
			n++
		}
		if n > 1 {
			e = fmt.Sprintf("%dx%s", n, e)
		}
		parts = append(parts, e)
		i += n
	}
	return "[" + strings.Join(parts, " ") + "]"
}

// element is a value that is written though it be zero.
func (p *Printer) element(v reflect.Value) string {
	if s := p.value(v); s != "" {
		return s
	}
	switch v.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint32, reflect.Uint64, reflect.Bool,
		reflect.Float64:
		return fmt.Sprint(v.Interface())
	}
	return "{}"
}
