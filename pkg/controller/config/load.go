package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/spf13/viper"

	"gangd/pkg/core/nearest"
	"gangd/pkg/wire/trusted"
)

// source is where values came from, for messages.
type source struct {
	file  string
	lines map[string]int    // of keys in the file: "grace", "partition[0].nodes"
	set   map[string]string // key=value overrides
	errs  []error
}

// problem is one thing wrong, with where it stands for sorting.
type problem struct {
	line int // 0: not in the file
	text string
}

func (p *problem) Error() string { return p.text }

// wrong makes the error for a value: the place, the key as it stands there, what is wanted.
func (s *source) wrong(key, want string) error {
	if v, ok := s.set[key]; ok {
		return &problem{text: fmt.Sprintf("--set %s=%s: %s", key, v, want)}
	}
	short := key[strings.LastIndexByte(key, '.')+1:]
	if line, ok := s.lines[key]; ok {
		return &problem{line, fmt.Sprintf("%s:%d: %s: %s", s.file, line, short, want)}
	}
	if table, _, ok := strings.Cut(key, "."); ok && s.lines[table] > 0 {
		return &problem{s.lines[table], fmt.Sprintf("%s:%d: %s: %s", s.file, s.lines[table], short, want)}
	}
	return &problem{text: fmt.Sprintf("%s: %s", key, want)}
}

// problems joins all that is wrong in the order of the file.
func (s *source) problems(more ...error) error {
	all := append(s.errs, more...)
	slices.SortStableFunc(all, func(a, b error) int {
		var p, q *problem
		if errors.As(a, &p) && errors.As(b, &q) {
			return cmp.Compare(p.line, q.line)
		}
		return 0
	})
	return errors.Join(all...)
}

// text is what a configuration file says, and its name; the zero value is no file.
type text struct {
	path string
	data []byte
}

func readText(path string) (text, error) {
	if path == "" {
		return text{}, nil
	}
	if err := trusted.File(path); err != nil {
		return text{}, fmt.Errorf("configuration: %w", err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return text{}, fmt.Errorf("configuration: %w", err)
	}
	return text{path, data}, nil
}

// load reads a file's text and set into the struct that out points to. Errors of single values
// stay in the source, so that they are reported together with what the caller finds; a
// file that can't be parsed ends the load.
func load(t *table, file text, set []string, out any) (*source, error) {
	v := viper.New()
	v.SetConfigType("toml")
	src := &source{file: file.path, set: map[string]string{}}
	if file.path != "" {
		if err := src.read(v, file); err != nil {
			return nil, err
		}
	}
	src.override(t, v, set)
	fields := fieldsOf(reflect.ValueOf(out).Elem())
	for _, key := range slices.Sorted(maps.Keys(v.AllSettings())) {
		src.assign(t, key, v.Get(key), fields)
	}
	if err := src.problems(); err != nil {
		return nil, err
	}
	return src, nil
}

func (s *source) read(v *viper.Viper, file text) error {
	if err := v.ReadConfig(bytes.NewReader(file.data)); err != nil {
		var bad *toml.DecodeError
		if errors.As(err, &bad) {
			line, column := bad.Position()
			return fmt.Errorf("%s:%d:%d: not TOML: %s", file.path, line, column, strings.TrimPrefix(bad.Error(), "toml: "))
		}
		return fmt.Errorf("%s: %w", file.path, err)
	}
	s.lines = keyLines(file.data)
	return nil
}

// override applies key=value pairs; a later one wins.
func (s *source) override(t *table, v *viper.Viper, set []string) {
	for _, kv := range set {
		key, value, ok := strings.Cut(kv, "=")
		switch key = strings.TrimSpace(key); {
		case !ok || key == "":
			s.errs = append(s.errs, &problem{text: fmt.Sprintf("--set %s: want key=value", kv)})
		case t.row(key) == nil:
			s.errs = append(s.errs, &problem{text: fmt.Sprintf("--set %s: %s", kv, t.unknown(key))})
		default:
			s.set[key] = value
			v.Set(key, value)
		}
	}
}

// unknown is the sentence about a key that the daemon does not have.
func (t *table) unknown(key string) string {
	other := nodeTable
	if t == nodeTable {
		other = controllerTable
	}
	if slices.Contains(t.names(), key) {
		return fmt.Sprintf("%s is a table of the file, written [[%s]]", key, key)
	}
	if slices.Contains(other.names(), key) {
		return fmt.Sprintf("%s is a key of %s, not of %s", key, other.daemon, t.daemon)
	}
	if now, ok := t.renamed[key]; ok {
		return fmt.Sprintf("%s is named %s now", key, now)
	}
	return unknownKey(key, t.names())
}

func unknownKey(key string, names []string) string {
	if n := nearest.Of(key, names); n != "" {
		return fmt.Sprintf("unknown key %q; nearest is %s", key, n)
	}
	slices.Sort(names)
	return fmt.Sprintf("unknown key %q; there are: %s", key, strings.Join(names, " "))
}

func (s *source) assign(t *table, key string, raw any, fields map[string]reflect.Value) {
	if l, ok := t.lists[key]; ok {
		s.assignList(l, key, raw, fields[key])
		return
	}
	r := t.row(key)
	if r == nil {
		s.errs = append(s.errs, s.wrongKey(key, t.unknown(key)))
		return
	}
	s.put(r, key, raw, fields[key])
}

// wrongKey is wrong for a key that should not be there; the sentence names it.
func (s *source) wrongKey(key, sentence string) error {
	return &problem{s.lines[key], fmt.Sprintf("%s:%d: %s", s.file, s.lines[key], sentence)}
}

func (s *source) put(r *row, key string, raw any, field reflect.Value) {
	v, err := convert(raw, field.Type())
	if err == nil && r.check != nil {
		err = r.check(reflect.Indirect(v).Interface())
	}
	if err != nil {
		s.errs = append(s.errs, s.wrong(key, s.found(key, raw)+err.Error()))
		return
	}
	field.Set(v)
}

// found quotes what stands in the file; the command line's own text is in the message.
func (s *source) found(key string, raw any) string {
	if _, ok := s.set[key]; ok {
		return ""
	}
	switch v := raw.(type) {
	case []any, map[string]any:
		return ""
	case string:
		return fmt.Sprintf("%q: ", v)
	}
	return fmt.Sprintf("%v: ", raw)
}

// assignList reads an array of tables.
func (s *source) assignList(l list, key string, raw any, field reflect.Value) {
	tables, ok := raw.([]any)
	if !ok {
		s.errs = append(s.errs, s.wrong(key, fmt.Sprintf("want tables written [[%s]], each with a name", key)))
		return
	}
	for i, e := range tables {
		m, ok := e.(map[string]any)
		if !ok {
			s.errs = append(s.errs, s.wrong(key, fmt.Sprintf("want tables written [[%s]], each with a name", key)))
			return
		}
		item := reflect.New(l.of).Elem()
		fields := fieldsOf(item)
		for _, k := range slices.Sorted(maps.Keys(m)) {
			full := fmt.Sprintf("%s[%d].%s", key, i, k)
			if r := findRow(l.rows, k); r != nil {
				s.put(r, full, m[k], fields[k])
			} else {
				s.errs = append(s.errs, s.wrongKey(full, unknownKey(k, slices.Sorted(maps.Keys(fields)))))
			}
		}
		field.Set(reflect.Append(field, item))
	}
}

// fieldsOf maps keys to the fields of a struct, those of squashed structs included.
func fieldsOf(v reflect.Value) map[string]reflect.Value {
	out := map[string]reflect.Value{}
	for i := range v.NumField() {
		tag := v.Type().Field(i).Tag.Get("mapstructure")
		if tag == ",squash" {
			maps.Copy(out, fieldsOf(v.Field(i)))
		} else if tag != "" {
			out[tag] = v.Field(i)
		}
	}
	return out
}
