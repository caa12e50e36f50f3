package script

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
)

// TestChange: what waits is asked for anew with some of its words changed, as if it had been asked for so at first; also a job
// that was asked for without any.
func TestChange(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	build := func(words string) *Request {
		t.Helper()
		s, _, err := Flags(strings.Fields(words))
		if err != nil {
			t.Fatal(err)
		}
		req, _, err := Build(s, now)
		if err != nil {
			t.Fatal(err)
		}
		return req
	}
	for _, c := range []struct{ was, change, is string }{
		{"", "--nodes=2", "--nodes=2"},
		{"", "--ntasks=3 --mem=2G", "--ntasks=3 --mem=2G"},
		{"--nodes=2", "--nodes=3", "--nodes=3"},
		{"--nodes=2 --mem=1G", "--mem=", "--nodes=2"},
		{"--nodes=2 --mem=1G", "--mem-per-cpu=1G", "--nodes=2 --mem-per-cpu=1G"},
		{"--nodes=2 --gpus=4", "--gres=gpu:2", "--nodes=2 --gres=gpu:2"},
		{"--nodes=2 --exclusive", "--nodelist=n1", "--nodes=2 --exclusive --nodelist=n1"},
		{"--nodes=2 --cpus-per-task=4", "--cpus-per-task=", "--nodes=2"},
		{"--ntasks=4", "--ntasks-per-node=2", "--ntasks=4 --ntasks-per-node=2"},
	} {
		req, which, _, err := Change(build(c.was).Spec.Words, strings.Fields(c.change), now)
		if err != nil {
			t.Errorf("%q changed by %q: %v", c.was, c.change, err)
			continue
		}
		if want := build(c.is); !reflect.DeepEqual(req.Spec, want.Spec) || !reflect.DeepEqual(which, []api.SpecPart{api.PartResources}) {
			t.Errorf("%q changed by %q: %+v, %v, want %+v", c.was, c.change, req.Spec, which, want.Spec)
		}
	}
	if _, _, _, err := Change(nil, []string{"--nodes=2"}, now); err == nil || !strings.Contains(err.Error(), "not known any more") {
		t.Errorf("words that are not known: %v", err)
	}
	if _, which, _, err := Change(nil, []string{"--output=x", "--account=a"}, now); err != nil || len(which) != 2 {
		t.Errorf("what needs no words: %v, %v", which, err)
	}
}
