package used

import (
	"testing"

	"gangd/pkg/api"
)

func TestSparkline(t *testing.T) {
	if got := sparkline(api.Points{0, 12, 13, 50, api.UnknownPoint, 99, 100, 254}); got != "▁▁▂▅ ███" {
		t.Errorf("%q", got)
	}
}

func TestStart(t *testing.T) {
	s := func(v float64) *float64 { return &v }
	for _, c := range []struct {
		parts *api.StartParts
		want  string
	}{
		{nil, ""},
		{&api.StartParts{Image: s(4), Prolog: s(1), Wait: s(2)}, ""},
		{&api.StartParts{CardUse: s(0)}, "[                    ] 0.0 s to the first step"},
		{&api.StartParts{Beat: s(12)}, "[bbbbbbbbbbbbbbbbbbbb] 12.0 s to the first step: to the first beat 12.0 s"},
		{&api.StartParts{Prepare: s(0.01), Wait: s(0.02), CardUse: s(12)}, "[cccccccccccccccccccc] 12.0 s to the first step: to the first use of a card 12.0 s"},
		{&api.StartParts{Image: s(4), Prolog: s(1), Prepare: s(1), Wait: s(2), CardUse: s(4), Beat: s(12)},
			"[iiiiprwwccccbbbbbbbb] 20.0 s to the first step: image 4.0 s, prolog 1.0 s, prepare 1.0 s, wait 2.0 s, to the first use of a card 4.0 s, to the first beat 8.0 s"},
		// It beat before it used a card.
		{&api.StartParts{CardUse: s(10), Beat: s(5)}, "[cccccccccccccccccccc] 10.0 s to the first step: to the first use of a card 10.0 s"},
	} {
		if got := Start(c.parts); got != c.want {
			t.Errorf("%q\nwant %q", got, c.want)
		}
	}
}

// A little energy is not none.
func TestEnergy(t *testing.T) {
	for joules, want := range map[float64]string{0: "0Wh", 40: "0.1Wh", 560: "0.2Wh", 35_999: "10.0Wh", 36_000: "10Wh", 3.6e6: "1.0kWh"} {
		if got := Energy(&joules); got != want {
			t.Errorf("%g J: %s, want %s", joules, got, want)
		}
	}
}
