// Package document writes the JSON and YAML of Slurm's commands: a list of objects whose members keep their
// order, in the envelope of a data parser. A [Style] says which, v0.0.38 of Slurm 22.05 or a later one; commands write
// numbers, states and ends as values of this package ([Number], [Flags], [Exit] ...), and the style makes of them what its
// parser has. The members of each were read in the tables of Slurm's own parsers (src/plugins/data_parser).
//
// Begin with Style and Object. It must not know jobs, nodes or the controller.
package document

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// Member is one member of an object. A value is nil, a bool, an int64 or int, a float64, a
// string, an [Object], or a []any of such.
type Member struct {
	Key   string
	Value any
}

// Object is an object, its members in order.
type Object []Member

// Of makes an object of keys and values that follow each other.
func Of(pairs ...any) Object {
	o := make(Object, 0, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		o = append(o, Member{pairs[i].(string), pairs[i+1]})
	}
	return o
}

// Texts makes a list of strings.
func Texts(words []string) []any {
	out := make([]any, len(words))
	for i, w := range words {
		out[i] = w
	}
	return out
}

// Time is a time in seconds, 0: none.
func Time(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// write writes o as JSON, or as Slurm's YAML 1.1.
func write(w io.Writer, o Object, yaml bool) error {
	out := bufio.NewWriterSize(w, 64<<10)
	if yaml {
		out.WriteString("%YAML 1.1\n---")
		writeYAML(out, o, "")
		out.WriteString("...\n")
		return out.Flush()
	}
	writeJSON(out, o, "\n")
	out.WriteByte('\n')
	return out.Flush()
}

// writeJSON writes v with two blanks a level.
func writeJSON(w *bufio.Writer, v any, newline string) {
	switch v := v.(type) {
	case Object:
		w.WriteByte('{')
		for i, m := range v {
			if i > 0 {
				w.WriteByte(',')
			}
			w.WriteString(newline + "  ")
			writeText(w, m.Key)
			w.WriteString(": ")
			writeJSON(w, m.Value, newline+"  ")
		}
		w.WriteString(newline + "}")
	case []any:
		w.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				w.WriteByte(',')
			}
			w.WriteString(newline + "  ")
			writeJSON(w, e, newline+"  ")
		}
		w.WriteString(newline + "]")
	case string:
		writeText(w, v)
	default:
		w.WriteString(scalar(v))
	}
}

// writeText writes a JSON string; what json makes of it needs no second look.
func writeText(w *bufio.Writer, s string) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // of a string it can't fail
	w.Write(bytes.TrimRight(b.Bytes(), "\n"))
}

func scalar(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case float64:
		s := strconv.FormatFloat(v, 'f', -1, 64)
		if !strings.Contains(s, ".") {
			s += ".0"
		}
		return s
	}
	return fmt.Sprint(v)
}

// writeYAML writes v as Slurm does, every value with its tag, an empty text as null: behind a key
// or a dash, its members with the given indent.
func writeYAML(w *bufio.Writer, v any, indent string) {
	switch v := v.(type) {
	case Object:
		if len(v) == 0 {
			w.WriteString(" !!map {}\n")
			return
		}
		w.WriteString(" !!map\n")
		for _, m := range v {
			w.WriteString(indent + "!!str " + m.Key + ":")
			writeYAML(w, m.Value, deeper(m.Value, indent))
		}
	case []any:
		if len(v) == 0 {
			w.WriteString(" !!seq []\n")
			return
		}
		w.WriteString(" !!seq\n")
		for _, e := range v {
			w.WriteString(indent + "-")
			writeYAML(w, e, indent+"  ")
		}
	case nil:
		w.WriteString(" !!null null\n")
	case string:
		if v == "" {
			w.WriteString(" !!null null\n")
			return
		}
		w.WriteString(" !!str " + yamlText(v) + "\n")
	case bool:
		w.WriteString(" !!bool " + scalar(v) + "\n")
	case float64:
		w.WriteString(" !!float " + scalar(v) + "\n")
	default:
		w.WriteString(" !!int " + scalar(v) + "\n")
	}
}

// deeper is the indent of what stands below a key: a list's dashes stand under the key itself.
func deeper(v any, indent string) string {
	if _, list := v.([]any); list {
		return indent
	}
	return indent + "  "
}

// yamlText is a text that reads back as it is: plain where nothing in it means something.
func yamlText(s string) string {
	plain := strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == ' ' || strings.ContainsRune("/._=()+-", r))
	}) < 0
	if plain && strings.TrimSpace(s) == s && !strings.HasPrefix(s, "-") {
		return s
	}
	return strconv.Quote(s)
}
