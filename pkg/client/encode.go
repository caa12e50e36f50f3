package client

import (
	"encoding"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
)

// encode is json.Marshal for a value that is written once in the life of a process. That one first works out
// how to write each type that the value could hold, which for a submission takes a tenth of gsubmit's time; this
// looks at what is there. What it does not know it leaves to json.Marshal.
func encode(v any) ([]byte, error) { return appendValue(nil, reflect.ValueOf(v)) }

func appendValue(b []byte, v reflect.Value) ([]byte, error) {
	for v.Kind() == reflect.Pointer && !v.IsNil() && !writesItself(v.Type()) {
		v = v.Elem()
	}
	if t := v.Type(); writesItself(t) || writesItself(reflect.PointerTo(t)) {
		return appendAny(b, v)
	}
	switch v.Kind() {
	case reflect.Bool:
		return strconv.AppendBool(b, v.Bool()), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.AppendInt(b, v.Int(), 10), nil
	case reflect.Struct:
		return appendStruct(b, v)
	case reflect.Slice:
		return appendSlice(b, v)
	}
	return appendAny(b, v)
}

func writesItself(t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[json.Marshaler]()) || t.Implements(reflect.TypeFor[encoding.TextMarshaler]())
}

func appendAny(b []byte, v reflect.Value) ([]byte, error) {
	if v.CanAddr() { // its methods may be those of its pointer
		v = v.Addr()
	}
	text, err := json.Marshal(v.Interface())
	return append(b, text...), err
}

func appendStruct(b []byte, v reflect.Value) (_ []byte, err error) {
	t, whole := v.Type(), v
	start := len(b)
	b = append(b, '{')
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" || options != "" && options != "omitempty" && options != "omitzero" {
			return appendAny(b[:start], whole)
		}
		v := v.Field(i)
		if options == "omitempty" && isEmpty(v) || options == "omitzero" && isZero(v) {
			continue
		}
		if len(b) > start+1 {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), name...), '"', ':')
		if b, err = appendValue(b, v); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

// isEmpty is what omitempty leaves out.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map, reflect.String, reflect.Array:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}

// isZero is what omitzero leaves out.
func isZero(v reflect.Value) bool {
	if z, ok := v.Interface().(interface{ IsZero() bool }); ok && v.Kind() != reflect.Pointer {
		return z.IsZero()
	}
	return v.IsZero()
}

func appendSlice(b []byte, v reflect.Value) (_ []byte, err error) {
	switch {
	case v.IsNil():
		return append(b, "null"...), nil
	case v.Type().Elem().Kind() == reflect.Uint8:
		b = append(b, '"')
		b = base64.StdEncoding.AppendEncode(b, v.Bytes())
		return append(b, '"'), nil
	}
	b = append(b, '[')
	for i := range v.Len() {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = appendValue(b, v.Index(i)); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}
