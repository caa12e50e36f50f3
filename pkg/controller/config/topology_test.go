package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gangd/pkg/api"
)

func TestReadTopology(t *testing.T) {
	path := filepath.Join(t.TempDir(), "topology.conf")
	read := func(text string) ([]api.Switch, error) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return readTopology(path)
	}
	got, err := read("# the machine room\nSwitchName=spine Switches=leaf[1-2] LinkSpeed=100\n\nswitchname=leaf1 nodes=n[3-4] # rack 1\nSwitchName=leaf2 Nodes=n1,n2\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []api.Switch{{Name: "leaf1", Nodes: []string{"n3", "n4"}, Parent: "spine"}, {Name: "leaf2", Nodes: []string{"n1", "n2"}, Parent: "spine"},
		{Name: "spine", Level: 1, Nodes: []string{"n1", "n2", "n3", "n4"}, Switches: []string{"leaf1", "leaf2"}}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, tt := range []struct{ text, want string }{
		{"Nodes=n1", ":1: want SwitchName=NAME with Nodes=LIST or Switches=LIST"},
		{"SwitchName=a", ":1: switch a: want Nodes=LIST or Switches=LIST, one of them"},
		{"SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2", ":2: there is a switch a above"},
		{"SwitchName=a Nodes=n1 Switchs=b", `:1: unknown word "Switchs": did you mean switches?`},
		{"SwitchName=a Nodes=n1\nSwitchName=b Nodes=n1", ":2: switch b: node n1 is below a already"},
		{"SwitchName=a Switches=b", ":1: switch a: there is no switch b"},
		{"SwitchName=a Nodes=n1\nSwitchName=b Switches=a\nSwitchName=c Switches=a", ":3: switch c: switch a is below b already"},
		{"SwitchName=a Switches=b\nSwitchName=b Switches=a", ":2: switch b is below itself"},
	} {
		if _, err := read(tt.text); err == nil || err.Error() != path+tt.want {
			t.Errorf("%q: %v, want %s", tt.text, err, tt.want)
		}
	}
}
