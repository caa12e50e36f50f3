package row

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"gangd/pkg/api"
)

// Spec encodes a spec.
func Spec(s *api.Spec) ([]byte, error) { return json.Marshal(s) }

// DecodeSpec decodes a spec.
func DecodeSpec(hash string, data []byte) (*api.Spec, error) {
	s := new(api.Spec)
	if err := json.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("row of spec %s: %w", hash, err)
	}
	return s, nil
}

// Options decodes specs without their names and texts, and gives all that are the same then one value: of a hundred
// thousand rows nearly everything is name and text.
type Options struct {
	known map[string]options // by the text of what is left
	left  []byte
}

// Decode gives the options of a spec and the size of its texts. What it leaves out may be anything that a checksum lets pass.
func (o *Options) Decode(hash string, data []byte) (s *api.Spec, texts int64, err error) {
	texts, ok := o.cut(data)
	if !ok {
		whole, err := DecodeSpec(hash, data)
		if err != nil {
			return nil, 0, err
		}
		s = whole.WithoutTexts()
		s.Name = ""
		return s, whole.TextBytes(), nil
	}
	if had, there := o.known[string(o.left)]; there {
		return had.spec, texts + had.bytes, nil
	}
	if s, err = DecodeSpec(hash, o.left); err != nil {
		return nil, 0, err
	}
	if o.known == nil {
		o.known = map[string]options{}
	}
	had := options{s.WithoutTexts(), s.OptionBytes()}
	o.known[string(o.left)] = had
	return had.spec, texts + had.bytes, nil
}

// options are a spec without its texts, and what the texts in its options come to.
type options struct {
	spec  *api.Spec
	bytes int64
}

// cut leaves the fields that are neither name nor text, and gives the size of the texts; false: it is not a row with a checksum.
func (o *Options) cut(data []byte) (texts int64, ok bool) {
	if !bytes.HasPrefix(data, []byte(`{"sum":`)) {
		return 0, false // of a version before: nobody knows yet that it is whole
	}
	o.left = append(o.left[:0], '{')
	for at := 1; ; {
		colon := past(data, at)
		end := past(data, colon+1)
		if colon == -1 || data[colon] != ':' || end <= colon+1 {
			return 0, false
		}
		switch value := data[colon+1 : end]; string(data[at:colon]) {
		case `"sum"`, `"name"`:
		case `"script"`:
			if value[0] == '"' {
				texts += int64(base64.StdEncoding.DecodedLen(len(value)-2) - bytes.Count(value, []byte("=")))
			}
		case `"args"`, `"env"`:
			n, ok := lengths(value)
			if !ok {
				return 0, false
			}
			texts += n
		default:
			o.left = append(append(o.left, data[at:end]...), ',')
		}
		if at = end + 1; data[end] == '}' {
			o.left = append(bytes.TrimSuffix(o.left, []byte(",")), '}')
			return texts, true
		}
	}
}

// past is where the value ends that begins there, before a comma, a colon or a bracket; -1: nowhere.
func past(data []byte, at int) int {
	for depth, i := 0, at; i < len(data); i++ {
		switch data[i] {
		case '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
		case ',', ':':
			if depth == 0 {
				return i
			}
		}
	}
	return -1
}

// lengths is what the strings of a list come to; false: it is no list of them, or an empty one, which no row has.
func lengths(list []byte) (n int64, ok bool) {
	for at := 1; list[0] == '['; {
		end := past(list, at)
		if end == -1 || list[at] != '"' {
			return 0, false
		}
		one := list[at:end]
		if bytes.Contains(one, []byte(`\`)) {
			var text string
			if json.Unmarshal(one, &text) != nil {
				return 0, false
			}
			n += int64(len(text))
		} else {
			n += int64(len(one) - len(`""`))
		}
		if at = end + 1; list[end] == ']' {
			return n, true
		}
	}
	return 0, false
}
