package notify

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gangd/pkg/api"
)

var quiet = slog.New(slog.DiscardHandler)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestResolve(t *testing.T) {
	site := &Site{Mail: &Mail{Domain: "uni.example", Domains: []string{"uni.example", ".lab.example"}}, Targets: []*Webhook{{Name: "chat"}}}
	end := []api.NotifyType{api.NotifyEnd}
	for _, c := range []struct {
		name string
		site *Site
		ask  api.Notify
		to   string // of what is kept; empty: nothing is
		warn string
		err  string
	}{
		{"the user's own address", site, api.Notify{Types: end}, "ada@uni.example", "", ""},
		{"a name alone", site, api.Notify{To: "bob", Types: end}, "bob@uni.example", "", ""},
		{"a domain below one", site, api.Notify{To: "x@a.lab.example", Types: end}, "x@a.lab.example", "", ""},
		{"a domain not listed", site, api.Notify{To: "x@evil.example", Types: end}, "", "", "sends no mail to evil.example"},
		{"one that ends alike", site, api.Notify{To: "x@eviluni.example", Types: end}, "", "", "sends no mail"},
		{"a header in an address", site, api.Notify{To: "x@uni.example\r\nBcc: y@z", Types: end}, "", "", "no mail address"},
		{"two addresses in one", site, api.Notify{To: "x@evil.example,y@uni.example", Types: end}, "", "", "no mail address"},
		{"a target", site, api.Notify{Target: "chat", Types: end}, "chat", "", ""},
		{"a target not listed", site, api.Notify{Target: "http://169.254.169.254/", Types: end}, "", "", "no target"},
		{"a kind that is none", site, api.Notify{Types: []api.NotifyType{"MORE"}}, "", "", "no kind"},
		{"no mail server", &Site{}, api.Notify{Types: end}, "", "no mail server", ""},
		{"no burst buffers", site, api.Notify{Types: []api.NotifyType{api.NotifyStageOut}}, "ada@uni.example", "STAGE_OUT never", ""},
	} {
		kept, warnings, err := c.site.Resolve([]api.Notify{c.ask}, "ada")
		got := ""
		if len(kept) == 1 {
			got = kept[0].Target + kept[0].To
		}
		var refused *api.Error
		if got != c.to || !strings.Contains(strings.Join(warnings, "; "), c.warn) || (c.warn == "") != (len(warnings) == 0) || (err != nil) != (c.err != "") ||
			err != nil && (!errors.As(err, &refused) || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: kept %q, warned %q, %v", c.name, got, warnings, err)
		}
	}
}

func TestSubjects(t *testing.T) {
	l := letter(12, "ada")
	l.Ran = 26*time.Hour + 3*time.Second
	if got := subject(l); got != "Slurm Job_id=12 Name=train Ended, Run time 1-02:00:03, COMPLETED, ExitCode 0" {
		t.Error(got)
	}
	l.Type, l.State, l.ExitCode = api.NotifyFail, api.JobFailed, 3
	if got := subject(l); got != "Slurm Job_id=12 Name=train Failed, Run time 1-02:00:03, FAILED, ExitCode 3" {
		t.Error(got)
	}
	l.Ref, l.Array = "12_*", &api.LetterArray{Count: 3, States: map[api.JobState]int{api.JobCompleted: 2, api.JobFailed: 1}, MaxExit: 3, Failed: []int{2}}
	if got := subject(l); got != "Slurm Array Summary Job_id=12_* Name=train Failed, Mixed, ExitCode [0-3]" {
		t.Error(got)
	}
	if got := body([]*api.Letter{l}); !strings.Contains(got, "FAILED:     1 of 3\n") || !strings.Contains(got, "Failed:     2\n") {
		t.Error(got)
	}
}
