package rpc

import (
	"bytes"
	"io"
	"strconv"
	"unicode/utf8"

	"gangd/pkg/api"
)

// text reads a body that has to be text: JSON's decoder would put U+FFFD in the place of what is none, and somebody would be
// shown, or asked for, what nobody wrote. With whole a U+FFFD that is written as an escape is refused as well: programs in Go
// send that for bytes of an argument that are none.
type text struct {
	r     io.Reader
	whole bool
	at    int64

	refused error

	rest    []byte // of a rune that has begun
	escape  int    // digits of \uXXXX that are still to come, 5: a backslash was read
	value   uint64
	pending bool // the first half of a pair was read, and nothing since
}

// Read gives nothing of what is refused: a decoder that has a whole value in its hands looks at no error.
func (t *text) Read(b []byte) (int, error) {
	if t.refused != nil {
		return 0, t.refused
	}
	n, err := t.r.Read(b)
	if t.refused = t.look(b[:n]); t.refused == nil && err == io.EOF && len(t.rest) > 0 {
		t.refused = t.bad("not UTF-8")
	}
	if t.refused != nil {
		return 0, t.refused
	}
	return n, err
}

func (t *text) bad(what string) error {
	return api.Errorf(api.CodeInvalid, "the request has what is no text, before byte %d: %s", t.at, what)
}

func (t *text) look(b []byte) error {
	runes := b
	if len(t.rest) > 0 {
		runes = append(t.rest, b...)
	}
	if utf8.Valid(runes) {
		runes = nil
	}
	for len(runes) > 0 {
		if runes[0] < utf8.RuneSelf {
			runes = runes[1:]
			continue
		}
		r, n := utf8.DecodeRune(runes)
		if r == utf8.RuneError && n == 1 {
			if !utf8.FullRune(runes) {
				break
			}
			t.at += int64(len(b))
			return t.bad("not UTF-8")
		}
		runes = runes[n:]
	}
	t.rest = append([]byte(nil), runes...)
	for len(b) > 0 {
		if t.escape == 0 && !t.pending { // nothing has begun: on to the next backslash
			next := bytes.IndexByte(b, '\\')
			if next < 0 {
				t.at += int64(len(b))
				return nil
			}
			t.at += int64(next)
			b = b[next:]
		}
		t.at++
		if err := t.escapes(b[0]); err != nil {
			return err
		}
		b = b[1:]
	}
	return nil
}

// escapes follows what a backslash has begun.
func (t *text) escapes(c byte) error {
	switch {
	case t.escape == 5 && c == 'u':
		t.escape, t.value = 4, 0
	case t.escape == 5:
		t.escape = 0
		if t.pending {
			return t.bad("half of a pair of surrogates")
		}
	case t.escape > 0:
		digit, err := strconv.ParseUint(string(c), 16, 8)
		if err != nil {
			t.escape, t.pending = 0, false // no JSON: its decoder says so
			return nil
		}
		t.value = t.value<<4 | digit
		if t.escape--; t.escape > 0 {
			return nil
		}
		low := t.value >= 0xdc00 && t.value < 0xe000
		if low != t.pending {
			return t.bad("half of a pair of surrogates")
		}
		t.pending = t.value >= 0xd800 && t.value < 0xdc00
		if t.whole && t.value == utf8.RuneError {
			return t.bad("U+FFFD, which stands for bytes that are not UTF-8")
		}
	case c == '\\':
		t.escape = 5
	case t.pending:
		return t.bad("half of a pair of surrogates")
	}
	return nil
}
