package row

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gangd/pkg/api"
	"gangd/pkg/checksum"
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
			if rapid.Bool().Draw(t, "sum") {
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
			if _, ok := o.cut(text); !ok {
				continue
			}
			if first := seen[string(o.left)]; first != nil && first != got {
				t.Fatalf("%s: not the value of the same options before", text)
			}
			seen[string(o.left)] = got
		}
	})
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
