package api

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"
)

// TestPack: every text arrives with its own bytes through JSON, and one that is UTF-8 is its own.
func TestPack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := string(rapid.SliceOf(rapid.Byte()).Draw(rt, "bytes"))
		if rapid.Bool().Draw(rt, "packed like") {
			s = packed + s
		}
		b, err := json.Marshal(Pack(s))
		if err != nil {
			rt.Fatal(err)
		}
		var over string
		if err := json.Unmarshal(b, &over); err != nil || Unpack(over) != s {
			rt.Fatalf("%q came over as %q (%v)", s, Unpack(over), err)
		}
	})
	for _, s := range []string{"", "a", "ä", "日本", "\uFFFD"} {
		if Pack(s) != s || Shown(s) != s {
			t.Errorf("%q is not its own", s)
		}
	}
	if got := Shown(Pack("v\xe9")); got != "v?" {
		t.Errorf("shown as %q", got)
	}
	if got := Unpack(packed + "!"); got != packed+"!" {
		t.Errorf("what is not packed became %q", got)
	}
	spec := &Spec{Args: []string{"a", "\xff"}, Env: []string{"A=\xfe"}, WorkDir: "/d\xe9", Output: "o\xe9", Input: "i\xe9", Error: "e\xe9"}
	want := *spec
	spec.Pack()
	b, _ := json.Marshal(spec)
	var over Spec
	if err := json.Unmarshal(b, &over); err != nil {
		t.Fatal(err)
	}
	got := over.Unpacked()
	if got.Args[1] != want.Args[1] || got.Env[0] != want.Env[0] || got.WorkDir != want.WorkDir || got.Output != want.Output || got.Input != want.Input || got.Error != want.Error {
		t.Errorf("%+v", got)
	}
}
