package output

import "testing"

// TestColour: --color is over NO_COLOR, which is over the terminal.
func TestColour(t *testing.T) {
	for _, c := range []struct {
		when          Colour
		terminal      bool
		noColor, term string
		want          bool
	}{
		{ColourAuto, true, "", "xterm", true}, {ColourAuto, false, "", "xterm", false}, {ColourAuto, true, "1", "xterm", false}, {ColourAuto, true, "", "dumb", false},
		{ColourAlways, false, "1", "dumb", true}, {ColourNever, true, "", "xterm", false},
	} {
		t.Setenv("NO_COLOR", c.noColor)
		t.Setenv("TERM", c.term)
		if got := c.when.On(c.terminal); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
	var c Colour
	if err := c.Set("always"); err != nil || c != ColourAlways || c.Set("sometimes") == nil || c != ColourAlways {
		t.Errorf("%q", c)
	}
}
