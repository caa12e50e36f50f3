package jobapi

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"gangd/pkg/api"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Notification{
		"":                                   {},
		"WATCHDOG=1":                         {Beat: true},
		"WATCHDOG=1\n":                       {Beat: true},
		"WATCHDOG=0":                         {},
		"WATCHDOG=trigger":                   {},
		"READY=1\nSTATUS=up":                 {Ready: true, HasStatus: true, Status: "up"},
		"STATUS=":                            {HasStatus: true},
		"STATUS=a\nSTATUS=b":                 {HasStatus: true, Status: "b"},
		"STATUS=loss=2.31 = good":            {HasStatus: true, Status: "loss=2.31 = good"},
		"STATUS=red\x1b[31m\tx":              {HasStatus: true, Status: "red [31m x"},
		"STATUS=\xff":                        {HasStatus: true, Status: "?"},
		"STOPPING=1":                         {Stopping: true},
		"X_GANG_CHECKPOINT=done":             {Saved: true},
		"X_GANG_CHECKPOINT=begun":            {},
		"EXTEND_TIMEOUT_USEC=1500000":        {Extend: 1500 * time.Millisecond},
		"EXTEND_TIMEOUT_USEC=-1":             {},
		"EXTEND_TIMEOUT_USEC=99999999999999": {Extend: 24 * time.Hour},
		"EXTEND_TIMEOUT_USEC=999999999999999999999999": {Extend: 24 * time.Hour},
		"MAINPID=7\nFDSTORE=1\nnonsense\nWATCHDOG=1":   {Beat: true},
		" WATCHDOG=1": {},
	} {
		if diff := cmp.Diff(want, Parse([]byte(text))); diff != "" {
			t.Errorf("%q: -want +got\n%s", text, diff)
		}
	}
}

func TestStatusIsCutAtARune(t *testing.T) {
	got := Parse([]byte("STATUS=x" + strings.Repeat("ü", api.MaxStatusBytes))).Status
	if len(got) != api.MaxStatusBytes-1 || !utf8.ValidString(got) {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("WATCHDOG=1\nSTATUS=step 12\nEXTEND_TIMEOUT_USEC=5"))
	f.Fuzz(func(t *testing.T, b []byte) {
		n := Parse(b)
		if len(n.Status) > api.MaxStatusBytes || !utf8.ValidString(n.Status) || strings.ContainsAny(n.Status, "\n\r\x1b\x00") {
			t.Errorf("status %q", n.Status)
		}
		if n.Extend < 0 || n.Extend > 24*time.Hour {
			t.Errorf("extend %v", n.Extend)
		}
	})
}
