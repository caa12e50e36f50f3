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

// A little energy is not none.
func TestEnergy(t *testing.T) {
	for joules, want := range map[float64]string{0: "0Wh", 40: "0.1Wh", 560: "0.2Wh", 35_999: "10.0Wh", 36_000: "10Wh", 3.6e6: "1.0kWh"} {
		if got := Energy(&joules); got != want {
			t.Errorf("%g J: %s, want %s", joules, got, want)
		}
	}
}
