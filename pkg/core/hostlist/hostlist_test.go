package hostlist

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestExpand(t *testing.T) {
	for _, tt := range []struct {
		in, want string // blank separated
	}{
		{"", ""},
		{"n1", "n1"},
		{"n[1-3,7],gpu-[01-04]", "n1 n2 n3 n7 gpu-01 gpu-02 gpu-03 gpu-04"},
		{"n[08-11]", "n08 n09 n10 n11"},
		{"n[8-11]", "n8 n9 n10 n11"},
		{"r[1-2]n[1-2]", "r1n1 r1n2 r2n1 r2n2"},
		{"r[1-2]n[1-2]c[1-2]x,r[1-2]n[1-2]", "r1n1c1x r1n1c2x r2n1c1x r2n1c2x r1n2c1x r1n2c2x r2n2c1x r2n2c2x r1n1 r1n2 r2n1 r2n2"},
		{"n[1-2].cluster", "n1.cluster n2.cluster"},
		{"b,a,b", "b a"},
		{" a ,, b\n", "a b"},
		{"[1-2]", "1 2"},
	} {
		got, err := Expand(tt.in)
		if err != nil || strings.Join(got, " ") != tt.want {
			t.Errorf("Expand(%q) = %q, %v, want %q", tt.in, got, err, tt.want)
		}
	}
}

func TestExpandRefuses(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"n[1-", `host list "n[1-": a number expected at column 5, found the end`},
		{"n[1", `host list "n[1": ',', '-' or ']' expected at column 4, found the end`},
		{"n[]", `host list "n[]": a number expected at column 3, found "]"`},
		{"n[a]", `host list "n[a]": a number expected at column 3, found "a"`},
		{"n[3-1]", `host list "n[3-1]": column 5: range ends at 1 before it begins at 3`},
		{"n]", `host list "n]": a host name expected at column 2, found "]"`},
		{"n1,n\x00", `host list "n1,n\x00": a host name expected at column 5, found "\x00"`},
		{"n[0-99999999]", `host list "n[0-99999999]": column 2: more than 65536 hosts`},
		{"n[1-1000]x[1-1000]", `host list "n[1-1000]x[1-1000]": column 1: more than 65536 hosts`},
		{"n[1234567890]", `host list "n[1234567890]": a number of at most 9 digits expected at column 3, found "1"`},
	} {
		if got, err := Expand(tt.in); err == nil || err.Error() != tt.want {
			t.Errorf("Expand(%q) = %v, %v\nwant %s", tt.in, got, err, tt.want)
		}
	}
}

func TestCompress(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"", ""},
		{"n1", "n1"},
		{"n10 n2 n1 n3", "n[1-3,10]"},
		{"n01 n02 n1", "n[01-02],n1"},
		{"n09 n10 n11", "n[09-11]"},
		{"n09 n99 n100", "n[09,99],n100"},
		{"login n1 n2 n1", "login,n[1-2]"},
		{"n1.x n2.x n1.y", "n[1-2].x,n1.y"},
		{"r1n1 r1n2 r2n1", "r1n[1-2],r2n1"},
	} {
		if got := Compress(strings.Fields(tt.in)); got != tt.want {
			t.Errorf("Compress(%s) = %s, want %s", tt.in, got, tt.want)
		}
	}
}

func TestCompressThenExpand(t *testing.T) {
	name := rapid.StringMatching(`(n|gpu-|r1n|0|a9b)?[0-9]{1,11}(\.x|-)?|[a-z]{1,3}`)
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOf(name).Draw(t, "names")
		text := Compress(names)
		got, err := Expand(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		slices.SortFunc(names, Compare)
		names = slices.Compact(names)
		slices.SortFunc(got, Compare)
		if !slices.Equal(got, names) {
			t.Fatalf("%s gives %v, want %v", text, got, names)
		}
		if Compress(got) != text {
			t.Fatalf("%s is not compressed to itself but to %s", text, Compress(got))
		}
	})
}

func TestCompareIsAnOrder(t *testing.T) {
	name := rapid.StringMatching(`[ab0-3]{0,5}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := name.Draw(t, "a"), name.Draw(t, "b"), name.Draw(t, "c")
		if Compare(a, b) != -Compare(b, a) || (Compare(a, b) == 0) != (a == b) {
			t.Fatalf("%q %q: %d %d", a, b, Compare(a, b), Compare(b, a))
		}
		if Compare(a, b) <= 0 && Compare(b, c) <= 0 && Compare(a, c) > 0 {
			t.Fatalf("%q <= %q <= %q but not %q <= %q", a, b, c, a, c)
		}
	})
}

func FuzzExpand(f *testing.F) {
	for _, s := range []string{"n[1-3,7],gpu-[01-04]", "r[1-2]n[1-2]", "[", "n[1-99999999]", "a,,b", "n[1-2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		names, err := Expand(text)
		if err != nil {
			return
		}
		if len(names) > MaxHosts {
			t.Fatalf("%d names", len(names))
		}
		again, err := Expand(Compress(names))
		if err != nil || len(again) != len(names) {
			t.Fatalf("%q: %d names, compressed and expanded %d, %v", text, len(names), len(again), err)
		}
	})
}

func TestRanges(t *testing.T) {
	for want, in := range map[string][]int{"": nil, "5": {5}, "1-2,4": {1, 2, 4}, "1,3-5,9": {1, 3, 4, 5, 9},
		"4": {4}, "4-6": {4, 5, 6}, "9,4-5,7": {9, 4, 5, 7}, "3,2,1-2,4": {3, 2, 1, 2, 4}} {
		if got := Ranges(in); got != want {
			t.Errorf("%v: %q, want %q", in, got, want)
		}
	}
}
