package rpc

import (
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"gangd/pkg/api"
)

// TestBodiesAreText: what JSON's decoder would quietly replace is refused, in whatever pieces it comes.
func TestBodiesAreText(t *testing.T) {
	for body, want := range map[string]string{
		`{"name":"ab\u00e9\n\\u"}`:        "",
		`{"name":"\ud83d\ude00 \\ud800"}`: "", // a pair, and a backslash before a word
		"{\"name\":\"caf\u00e9 \u65e5\"}": "",
		"{\"name\":\"a\ufffdb\"}":         "", // somebody wrote it
		"{\"name\":\"c\xe9\"}":            "not UTF-8",
		"{\"name\":\"\xed\xa0\x80\"}":     "not UTF-8", // half of a pair in UTF-8
		"{\"name\":\"\xe6":                "not UTF-8",
		`{"name":"\ud800"}`:               "half of a pair",
		`{"name":"\ud800\n"}`:             "half of a pair",
		`{"name":"\ud800\u0041"}`:         "half of a pair",
		`{"name":"\udc00"}`:               "half of a pair",
		`{"name":"a\ufffdb"}`:             "U+FFFD",
		`{"name":"a\uFFFDb"}`:             "U+FFFD",
	} {
		for _, pieces := range []io.Reader{strings.NewReader(body), iotest.OneByteReader(strings.NewReader(body)), iotest.HalfReader(strings.NewReader(body))} {
			got, err := io.ReadAll(&text{r: pieces, whole: true})
			switch {
			case want == "" && (err != nil || string(got) != body):
				t.Errorf("%q: %v", body, err)
			case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
				t.Errorf("%q: %v, want %s", body, err, want)
			}
		}
		// As a call reads it, whose decoder may have all of it before it is told that it is none.
		body = strings.Replace(body, "name", "comment", 1)
		err := read(httptest.NewRequest("POST", "/v1/update", strings.NewReader(body)), new(api.UpdateRequest))
		if want == "" && err != nil && !strings.HasPrefix(err.Error(), "comment: ") || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("a call with %q: %v, want %s", body, err, want)
		}
	}
	if _, err := io.ReadAll(&text{r: strings.NewReader(`{"env":["A=\ufffd"]}`)}); err != nil {
		t.Errorf("of an environment: %v", err)
	}
}
