package fare

import "testing"

func TestPrice(t *testing.T) {
	for zones, want := range map[int]int{0: 1, 3: 6, 4: 7} {
		if got := Price(zones, false, false); got != want {
			t.Errorf("%d zones: %d, want %d", zones, got, want)
		}
	}
}

func TestRides(t *testing.T) {
	if got := Rides(4); got != 2 {
		t.Error(got)
	}
}

func TestBroken(t *testing.T) { t.Error("always") }
