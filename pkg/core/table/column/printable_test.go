package column

import (
	"strings"
	"testing"
	"unicode"
)

// TestPrintable: nothing that a terminal obeys, or that turns what stands behind it around, is left, and all that people write is.
func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "train-7": "train-7", "größe 模型 🚀 👩\u200d🔬": "größe 模型 🚀 👩\u200d🔬",
		"a\x1b]0;pwn\a\x1b[2J\nFAKE": "a?]0;pwn??[2J?FAKE", "a\u009b2J": "a?2J", "a\x7f\xff": "a??",
		"a\u202egnp.exe": "a?gnp.exe", "a\u2066b\u2069": "a?b?", "a\u200eb\u061c": "a?b?", "a\u2028b\u2029c": "a?b?c", "\ufeffa\U000e0041": "?a?",
	} {
		if got := Printable(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if got := Printable("a" + string(r)); (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) && got != "a?" {
			t.Fatalf("%U is left", r)
		}
	}
	if got := Lines("a\x1b\nb\n"); got != "a?\nb\n" || strings.Count(got, "\n") != 2 {
		t.Errorf("%q", got)
	}
}
