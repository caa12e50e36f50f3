package row

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gangd/pkg/api"
	"gangd/pkg/core/checksum"
)

// TestOptions: what is decoded of a spec is all but its name and texts, whatever these are, with the size of the texts; and
// it is one value for all that differ in nothing else.
func TestOptions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var o Options
		texts := rapid.SliceOfN(rapid.String(), 0, 3)
		seen := map[string]*api.Spec{}
		for range rapid.IntRange(1, 4).Draw(t, "specs") {
			s := &api.Spec{Size: 1}
			if rapid.Bool().Draw(t, "filled") {
				s = filled[api.Spec]()
			}
			s.Comment = rapid.SampledFrom([]string{"", `a "quoted" \ one`, "]},{["}).Draw(t, "comment")
			s.Name, s.Args, s.Env = rapid.String().Draw(t, "name"), texts.Draw(t, "args"), texts.Draw(t, "env")
			s.Script = rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(t, "script")
			text, err := Spec(s)
			if err != nil {
				t.Fatal(err)
			}
			sum := rapid.Bool().Draw(t, "sum")
			if sum {
				text = []byte(checksum.Add(text, "spec"))
			}
			whole, err := DecodeSpec("h", text) // a text that is no UTF-8 is stored as another
			if err != nil {
				t.Fatal(err)
			}
			got, size, err := o.Decode("h", text)
			want := whole.WithoutTexts()
			want.Name = ""
			if err != nil || size != whole.TextBytes() || !cmp.Equal(got, want) {
				t.Fatalf("%s: %d bytes of texts, want %d, %v\n%s", text, size, whole.TextBytes(), err, cmp.Diff(want, got))
			}
			if _, ok := o.cut(text); ok != sum {
				t.Fatalf("%s: cut: %v", text, ok)
			} else if !ok {
				continue
			}
			if first := seen[string(o.left)]; first != nil && first != got {
				t.Fatalf("%s: not the value of the same options before", text)
			}
			seen[string(o.left)] = got
		}
	})
}

// TestCut: what is left of a row, and the size of its texts.
func TestCut(t *testing.T) {
	for data, want := range map[string]string{
		`{"sum":"0"}`:          `{} 0`,
		`{"sum":"0","size":1}`: `{"size":1} 0`,
		`{"sum":"0","name":"]},{[\"\\","size":1,"a":[]}`:                   `{"size":1,"a":[]} 0`,
		`{"sum":"0","a":{"b":[{"env":["c"]},2]},"name":"d","e":null}`:      `{"a":{"b":[{"env":["c"]},2]},"e":null} 0`,
		`{"sum":"0","args":["a"],"size":1,"env":["","b,]","c\"\u00e4\\"]}`: `{"size":1} 9`,
		`{"sum":"0","script":"eHl6"}`:                                      `{} 3`,
		`{"sum":"0","script":"eHk=","env":["abc"]}`:                        `{} 5`,
		`{"sum":"0","script":"eA=="}`:                                      `{} 1`,
		`{"sum":"0","script":""}`:                                          `{} 0`,
		`{"sum":"0","script":null}`:                                        `{} 0`,
		// What no row is.
		`{"size":1}`:                "",
		`{"sum":"0","a","b"}`:       "",
		`{"sum":"0","script":}`:     "",
		`{"sum":"0","args":["a"}}`:  "",
		`{"sum":"0","args":["\x"]}`: "",
		`{"sum":"0","env":[]}`:      "",
		`{"sum":"0","env":[7]}`:     "",
		`{"sum":"0","env":"a"}`:     "",
		`{"sum":"0","env":null}`:    "",
		`{"sum":"0","env":["a",]}`:  "",
		`{"sum":"0","size":1`:       "",
		`{"sum":"0","size`:          "",
		`{"sum":"0",}`:              "",
	} {
		var o Options
		texts, ok := o.cut([]byte(data))
		got := fmt.Sprintf("%s %d", o.left, texts)
		if !ok {
			got = ""
		}
		if got != want {
			t.Errorf("%s: %q, want %q", data, got, want)
		}
	}
}

// TestOptionsOfWhatIsNone: no text makes it fail but with an error.
func TestOptionsOfWhatIsNone(t *testing.T) {
	whole := []byte(`{"sum":"00000000","name":"a","size":1,"env":["a","b\n"],"script":"eA=="}`)
	for i := range whole {
		if _, _, err := new(Options).Decode("h", whole[:i]); err == nil {
			t.Errorf("%s is taken", whole[:i])
		}
		for _, c := range []byte(`{}[]",:\`) {
			other := append([]byte(nil), whole...)
			other[i] = c
			_, _, _ = new(Options).Decode("h", other)
		}
	}
	if _, _, err := new(Options).Decode("h", []byte(`{"size":1,"env":[7],"script":"eA=="}`)); err == nil {
		t.Error("texts that nobody knows to be whole are taken unseen")
	}
}
