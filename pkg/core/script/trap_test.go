package script

import "testing"

func TestTraps(t *testing.T) {
	for text, want := range map[string]bool{
		"trap 'save' USR1\n":                        true,
		"trap save SIGUSR1":                         true,
		"trap save U\\SR1":                          true,
		"trap \"echo \\\"x\\\"; save\" TERM USR1\n": true,
		"trap -- 'a\nb' 10\n":                       true,
		"  cd x; trap save usr1; python\n":          true,
		"(trap save USR1; sleep 1)\n":               true,
		"trap 'a' TERM\ntrap b USR1\n":              true,
		"trap save USR2\n":                          false,
		"trap 'save' EXIT\nkill -USR1 $x\n":         false,
		"# trap save USR1\n":                        false,
		"\t # trap save USR1\ntrap '' USR1\n":       false,
		"trap - USR1\n":                             false,
		"trap '' USR1\n":                            false,
		"trap -p USR1\n":                            false,
		"trap -l USR1\n":                            false,
		"entrap save USR1\n":                        false,
		"trap save TERM; kill -s USR1 1\n":          false,
		"trap save TERM # USR1\n":                   false,
		"trap":                                      false,
		"":                                          false,
	} {
		if got := Traps(text, "USR1"); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
