package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/go-viper/mapstructure/v2"
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
	src.decode(t, v, out)
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
		if key, line := twice(file.data); line > 0 {
			return fmt.Errorf("%s:%d: not TOML: %s stands above already", file.path, line, key)
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

// decode gives out the values of v, and notes what is wrong with keys and values.
func (s *source) decode(t *table, v *viper.Viper, out any) {
	settings := v.AllSettings()
	s.unknown(t, settings)
	unknown := len(s.errs) > 0
	err := v.UnmarshalExact(out, viper.DecodeHook(convert), func(c *mapstructure.DecoderConfig) { c.IgnoreUntaggedFields = true })
	bad := map[string]bool{}
	for _, e := range leaves(err) {
		var want *wanted
		switch {
		case errors.As(e, &want):
			bad[e.Name()] = true
			if want.text == wantTables {
				want.text = fmt.Sprintf(wantTables, e.Name())
			}
			s.errs = append(s.errs, s.wrong(e.Name(), s.found(e.Name(), want.raw)+want.text))
		case !unknown: // else it is about keys that are told of already
			s.errs = append(s.errs, e)
		}
	}
	s.check(t.rows, "", settings, valuesOf(out), bad)
	for key, l := range t.lists {
		tables, _ := settings[key].([]any)
		for i, item := range l.items(out) {
			if set, ok := tables[i].(map[string]any); ok {
				s.check(l.rows, fmt.Sprintf("%s[%d].", key, i), set, valuesOf(item), bad)
			}
		}
	}
}

// unknown notes the keys of settings that the daemon does not have.
func (s *source) unknown(t *table, settings map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		l, ok := t.lists[key]
		if !ok {
			if t.row(key) == nil {
				s.errs = append(s.errs, s.wrongKey(key, t.unknown(key)))
			}
			continue
		}
		tables, _ := settings[key].([]any)
		for i, table := range tables {
			set, _ := table.(map[string]any)
			for _, k := range slices.Sorted(maps.Keys(set)) {
				if findRow(l.rows, k) == nil {
					s.errs = append(s.errs, s.wrongKey(fmt.Sprintf("%s[%d].%s", key, i, k), unknownKey(k, namesOf(l.rows))))
				}
			}
		}
	}
}

// check notes the values, of the keys in set, that are not what their rows want. Those in bad are noted already.
func (s *source) check(rows []row, prefix string, set, values map[string]any, bad map[string]bool) {
	for _, r := range rows {
		raw, ok := set[r.key]
		if !ok || r.check == nil || bad[prefix+r.key] {
			continue
		}
		if err := r.check(pointedTo(values[r.key])); err != nil {
			s.errs = append(s.errs, s.wrong(prefix+r.key, s.found(prefix+r.key, raw)+err.Error()))
		}
	}
}

// wrongKey is wrong for a key that should not be there; the sentence names it.
func (s *source) wrongKey(key, sentence string) error {
	return &problem{s.lines[key], fmt.Sprintf("%s:%d: %s", s.file, s.lines[key], sentence)}
}

// found quotes what stands in the file; the command line's own text is in the message.
func (s *source) found(key string, raw any) string {
	if _, ok := s.set[key]; ok {
		return ""
	}
	if slices.Contains(secrets, key[strings.LastIndexByte(key, '.')+1:]) {
		return "" // nobody is shown what it is
	}
	switch v := raw.(type) {
	case []any, map[string]any:
		return ""
	case string:
		return fmt.Sprintf("%q: ", v)
	}
	return fmt.Sprintf("%v: ", raw)
}

// leaves are the errors of single values and tables that a decoding came to.
func leaves(err error) []*mapstructure.DecodeError {
	switch e := err.(type) {
	case nil:
		return nil
	case *mapstructure.DecodeError:
		if below := leaves(e.Unwrap()); len(below) > 0 {
			return below
		}
		return []*mapstructure.DecodeError{e}
	case interface{ Unwrap() []error }:
		var all []*mapstructure.DecodeError
		for _, part := range e.Unwrap() {
			all = append(all, leaves(part)...)
		}
		return all
	case interface{ Unwrap() error }:
		return leaves(e.Unwrap())
	}
	return nil
}

// valuesOf maps the keys of a struct to its values, by the same tags by which it is decoded.
func valuesOf(of any) map[string]any {
	values := map[string]any{}
	d, err := mapstructure.NewDecoder(&mapstructure.DecoderConfig{Result: &values, IgnoreUntaggedFields: true})
	if err == nil {
		err = d.Decode(of)
	}
	if err != nil {
		panic(err) // a struct of ours whose tags are wrong
	}
	return values
}
