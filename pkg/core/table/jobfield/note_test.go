package jobfield

import (
	"reflect"
	"testing"

	"gangd/pkg/api"
)

// TestTextsAsAskedAreNotes: a text that a job carries as it was asked for is shown.
func TestTextsAsAskedAreNotes(t *testing.T) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[api.AsAsked]()) {
		if f.Type.Kind() != reflect.String {
			continue
		}
		j := &api.Job{}
		reflect.ValueOf(&j.AsAsked).Elem().FieldByIndex(f.Index).SetString("some " + f.Name)
		shown := 0
		for i := range Notes {
			if Notes[i].Of(j) != "" {
				shown++
			}
		}
		if shown != 1 || Note(f.Name, j) != "some "+f.Name {
			t.Errorf("%s is shown as %q, by %d notes", f.Name, Note(f.Name, j), shown)
		}
	}
}
