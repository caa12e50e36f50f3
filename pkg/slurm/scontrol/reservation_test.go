package scontrol

import (
	"testing"

	"gangd/pkg/api"
)

// What the controller refuses is said in the words that scripts look for.
func TestReservationWords(t *testing.T) {
	for _, x := range []struct {
		err  error
		want string
	}{
		{api.Errorf(api.CodeConflict, "reservation talk has n2 from 10:00 to 11:00 already").About(api.ReasonReserved, "talk"), overlapping},
		{api.Errorf(api.CodeConflict, "job 1 is on these nodes and may run without a limit"), busyNodes},
		{api.Errorf(api.CodeInvalid, "the start time 10:00 has passed"), badTime},
		{api.Errorf(api.CodeNotFound, "no reservation %q", "talk"), badReservation},
		{api.Errorf(api.CodePermission, "only admins"), "Access/permission denied"},
		{&inSlurmsWords{duplicateName}, "Duplicate reservation name"},
	} {
		if got := reservationWords(x.err); got != x.want {
			t.Errorf("%v: %s, want %s", x.err, got, x.want)
		}
	}
}

func TestReservationSayings(t *testing.T) {
	for in, want := range map[string]string{
		"users=-ada":          "-ada is refused: nobody can be left out of a list; name those who may.",
		"groups=staff":        "Groups is refused: name the users or accounts.",
		"duration=0":          "Invalid duration duration=0.",
		"flags=daily,hourly":  "Flags=hourly is refused: gangd has MAINT, IGNORE_JOBS, DAILY, WEEKLY and DRAIN.",
		"flags=daily,spec_no": "",
		"starttime=now+60":    "",
	} {
		got := ""
		if err := new(reservationAsk).take(in, false); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}

// What only operators may do of nodes and partitions is refused in Slurm's words for it.
func TestForOperators(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{words(forOperators(api.Errorf(api.CodePermission, "only admins"))), "Invalid user id"},
		{words(forOperators(api.Errorf(api.CodeNotFound, "no node n9"))), "Invalid job id specified"},
		{partitionWords(api.Errorf(api.CodePermission, "only admins")), "Invalid user id"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
