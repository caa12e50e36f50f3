package api

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"
)

// packed begins a text that stands for bytes which are no UTF-8, and goes on with them in base64. JSON carries no others:
// they would arrive as U+FFFD, without a word.
const packed = "\uFFFDbase64,"

// Pack is a text as JSON carries it whole. Nearly all are their own.
func Pack(s string) string {
	if utf8.ValidString(s) && !strings.HasPrefix(s, packed) {
		return s
	}
	return packed + base64.StdEncoding.EncodeToString([]byte(s))
}

// Unpack gives the bytes of a packed text.
func Unpack(s string) string {
	rest, ok := strings.CutPrefix(s, packed)
	if !ok {
		return s
	}
	b, err := base64.StdEncoding.DecodeString(rest)
	if err != nil {
		return s
	}
	return string(b)
}

// Shown is a packed text for people: what is no UTF-8 of it is "?".
func Shown(s string) string {
	if !strings.HasPrefix(s, packed) {
		return s
	}
	return strings.ToValidUTF8(Unpack(s), "?")
}

// PackAll and UnpackAll do so with each text of a list; one in which nothing is to be done is the same list.
func PackAll(list []string) []string   { return changed(list, Pack) }
func UnpackAll(list []string) []string { return changed(list, Unpack) }

func changed(list []string, f func(string) string) []string {
	for i, s := range list {
		if t := f(s); t != s {
			out := append([]string(nil), list...)
			for k := i; k < len(out); k++ {
				out[k] = f(out[k])
			}
			return out
		}
	}
	return list
}

// Unpacked is the spec with the bytes of its texts in place, for who runs it.
func (s *Spec) Unpacked() *Spec {
	if s == nil {
		return nil
	}
	c := *s
	c.Args, c.Env = UnpackAll(s.Args), UnpackAll(s.Env)
	c.WorkDir, c.Output, c.Error, c.Input = Unpack(s.WorkDir), Unpack(s.Output), Unpack(s.Error), Unpack(s.Input)
	return &c
}

// Pack makes its texts such that JSON carries them whole.
func (s *Spec) Pack() {
	s.Args, s.Env = PackAll(s.Args), PackAll(s.Env)
	s.WorkDir, s.Output, s.Error, s.Input = Pack(s.WorkDir), Pack(s.Output), Pack(s.Error), Pack(s.Input)
}
