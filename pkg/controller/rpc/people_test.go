package rpc

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gangd/pkg/wire/people"
)

// TestNamesThatAdminsWrite: whom the controller's host does not know is refused by name, in a list of people or of groups; who is
// known stays as the directory writes him, and one that does not answer refuses nobody.
func TestNamesThatAdminsWrite(t *testing.T) {
	etc := t.TempDir()
	for name, text := range map[string]string{"passwd": "root:x:0:0::/root:/bin/sh\nada:x:1000:100::/home/ada:/bin/sh\n", "group": "users:x:100:\n", "nsswitch.conf": "passwd: files\ngroup: files\n"} {
		if err := os.WriteFile(filepath.Join(etc, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s := &Server{Log: slog.New(slog.DiscardHandler), People: people.New(etc)}
	many := slices.Repeat([]string{"root"}, 20)
	for _, c := range []struct {
		users, groups []string
		err           string
	}{
		{[]string{"ada", "root"}, []string{"users"}, ""},
		{[]string{"50001"}, nil, ""}, // may be somebody's who has no name
		{[]string{"ALL"}, []string{"all"}, ""},
		{nil, nil, ""},
		{[]string{"ada", "bob"}, nil, `allow_users=ada,bob: the controller's host knows no user "bob"; names are as in getent passwd`},
		{[]string{"ada", "ALL"}, nil, `allow_users=ada,ALL: the controller's host knows no user "ALL"; names are as in getent passwd`},
		{[]string{"ada"}, []string{"users", "staff"}, `allow_groups=users,staff: the controller's host knows no group "staff"; names are as in getent group`},
		{nil, []string{"100"}, `allow_groups=100: the controller's host knows no group "100"; names are as in getent group`},
		{append(many, "eve"), nil, "allow_users=" + strings.Repeat("root,", 8) + `...: the controller's host knows no user "eve"; names are as in getent passwd`},
	} {
		err := s.knownPeople(t.Context(), users("allow_users", &c.users), groups("allow_groups", &c.groups))
		if err == nil && c.err != "" || err != nil && err.Error() != c.err {
			t.Errorf("%q, %q: %v, want %s", c.users, c.groups, err, c.err)
		}
	}
	asked := 0
	names := []string{"LAB\\Uwe", "ada", "nobody-at-all"}
	away := whom{"users", "user", &names, func(_ context.Context, _ *people.Directory, name string) (string, error) {
		if asked++; name == "ada" {
			return "", &people.NoAnswer{What: "user ada"}
		}
		return "LAB\\uwe", nil
	}}
	if err := s.knownPeople(t.Context(), away); err != nil || asked != 2 || !slices.Equal(names, []string{"LAB\\uwe", "ada", "nobody-at-all"}) {
		t.Errorf("with a directory that is away: %v, %d asked, %q", err, asked, names)
	}
}
