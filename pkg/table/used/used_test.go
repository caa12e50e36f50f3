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
