package output

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestFold: long lines are broken between words, hanging below their description; nothing else of the text is different.
func TestFold(t *testing.T) {
	const help = "  -S, --since DAY   jobs that have not ended, or ended since this DAY\n      --json        as JSON\n"
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{
		{help, 0, help},
		{help, 120, help},
		{help, 40, "  -S, --since DAY   jobs that have not\n                    ended, or ended\n                    since this DAY\n      --json        as JSON\n"},
		{"  n3: 2 of 4 cards free, needs 40G on each", 24, "  n3: 2 of 4 cards free,\n    needs 40G on each"},
		{"one two three four", 8, "one two\nthree\nfour"},
		{"averyveryverylongword and more", 10, "averyveryverylongword\nand more"},
		{"a line that ends in blanks      x", 20, "a line that ends in\nblanks      x"},
		{"    --a-very-long-option-name VALUE  what it is for", 30, "    --a-very-long-option-name\n      VALUE  what it is for"},
		{"", 10, ""},
	} {
		got := Fold(c.text, c.width)
		if got != c.want {
			t.Errorf("%q at %d: %q, want %q", c.text, c.width, got, c.want)
		}
		if strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(c.text), " ") {
			t.Errorf("%q at %d lost words: %q", c.text, c.width, got)
		}
	}
	if got, want := Paragraphs("one\ntwo\n\nthree\n  kept\n  so\nfour\n"), "one two\n\nthree\n  kept\n  so\nfour"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// FuzzFold: whatever the text, no line is longer than the width but for a single word, and the words are the same.
func FuzzFold(f *testing.F) {
	f.Add("  -a, --all   everything that is there\n", 20)
	f.Fuzz(func(t *testing.T, text string, width int) {
		if width < 1 || width > 300 || !utf8.ValidString(text) {
			t.Skip()
		}
		got := Fold(text, width)
		if strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(text), " ") {
			t.Errorf("words differ: %q", got)
		}
	})
}
