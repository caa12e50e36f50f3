package checksum

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
)

const object = `{"job":12,"epoch":3,"text":"it's {\"sum\":\"\"} \u2026"}`

func TestWhole(t *testing.T) {
	with := []byte(Add([]byte(object), "spec"))
	for _, b := range [][]byte{with, append(bytes.Clone(with), "\n\n\n"...), []byte(object), []byte(`{"a":1}`)} {
		if err := Check(b, "spec"); err != nil {
			t.Errorf("%s: %v", b, err)
		}
	}
	var of struct{ Job, Epoch int } // a reader that knows nothing of it
	if err := json.Unmarshal(with, &of); err != nil || of.Job != 12 || of.Epoch != 3 {
		t.Errorf("%s reads as %+v, %v", with, of, err)
	}
	if err := Check(with, "state"); err == nil {
		t.Error("one thing passes for another")
	}
	want := &Error{}
	if err := Check(bytes.Replace(with, []byte("12"), []byte("13"), 1), "spec"); !errors.As(err, &want) || want.Written == want.Found {
		t.Errorf("%v", err)
	}
}

// TestDamage: no cut and no flipped bit leaves an object that reads otherwise than it did.
func TestDamage(t *testing.T) {
	with := []byte(Add([]byte(object), "spec"))
	said := func(b []byte) (string, bool) {
		var of struct {
			Job, Epoch int
			Text       string
		}
		if Check(b, "spec") != nil || json.Unmarshal(b, &of) != nil {
			return "", false
		}
		text, _ := json.Marshal(of)
		return string(text), true
	}
	right, ok := said(with)
	if !ok {
		t.Fatal("it does not read back")
	}
	for n := range with {
		if got, ok := said(with[:n]); ok {
			t.Errorf("cut to %d: read as %s", n, got)
		}
		for bit := range 8 {
			b := bytes.Clone(with)
			b[n] ^= 1 << bit
			// A flip within the name of the field leaves an object without a checksum, and whole.
			if got, ok := said(b); ok && got != right {
				t.Errorf("bit %d of byte %d: read as %s", bit, n, got)
			}
		}
	}
}
