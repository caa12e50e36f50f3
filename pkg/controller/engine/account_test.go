package engine

import (
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/core/sched/order"
)

// TestAccounts: where the site names accounts, a job belongs to one of these that is open to its user.
func TestAccounts(t *testing.T) {
	vision := order.Account{Name: "vision", Users: []string{"alice", "bob"}}
	speech := order.Account{Name: "speech", Users: []string{"bob"}}
	guests := order.Account{Name: "guests"}
	def := func(a order.Account) order.Account { a.Default = true; return a }
	for _, tt := range []struct {
		name        string
		accounts    []order.Account
		asked, user string
		want        string
		code        api.Code
		hint        string
	}{
		{"no tables, any name", nil, "whatever", "alice", "whatever", "", ""},
		{"its own", []order.Account{vision, speech}, "speech", "bob", "speech", "", ""},
		{"the first that lists him", []order.Account{guests, vision, speech}, "", "bob", "vision", "", ""},
		{"nobody's", []order.Account{vision, guests}, "", "carol", "", "", ""},
		{"the default one", []order.Account{vision, def(guests)}, "", "carol", "guests", "", ""},
		{"listed elsewhere, not the default one", []order.Account{def(guests), vision}, "", "alice", "vision", "", ""},
		{"open to everybody", []order.Account{vision, guests}, "guests", "alice", "guests", "", ""},
		{"a slip", []order.Account{vision, guests}, "vison", "alice", "", api.CodeInvalid, "did you mean vision?"},
		{"not near", []order.Account{vision, guests}, "x", "alice", "", api.CodeInvalid, "accounts here: vision, guests"},
		{"another's", []order.Account{vision, speech, guests}, "speech", "alice", "", api.CodePermission, "open to alice: vision, guests"},
		{"the default one is closed", []order.Account{def(vision)}, "", "carol", "", api.CodePermission, "an admin lists users in the [[account]] tables of gangd.toml"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := &Engine{}
			e.published.Store(&inForce{policy: &order.Policy{Accounts: tt.accounts}})
			got, err := e.account(tt.asked, tt.user)
			if tt.code == "" {
				if err != nil || got != tt.want {
					t.Errorf("%q, %v, want %q", got, err, tt.want)
				}
				return
			}
			if e, _ := err.(*api.Error); e == nil || e.Code != tt.code || e.Hint != tt.hint {
				t.Errorf("%q, %#v, want %s with hint %q", got, err, tt.code, tt.hint)
			}
		})
	}
}
