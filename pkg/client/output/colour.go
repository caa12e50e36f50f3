package output

import (
	"fmt"
	"os"
)

// Colour is when output has colours.
type Colour string

// The values of --color.
const (
	ColourAuto   Colour = "auto" // on a terminal that is not dumb, without NO_COLOR
	ColourAlways Colour = "always"
	ColourNever  Colour = "never"
)

// When is what --color says for the whole process.
var When = ColourAuto

// Set reads the value of --color.
func (c *Colour) Set(text string) error {
	switch v := Colour(text); v {
	case ColourAuto, ColourAlways, ColourNever:
		*c = v
		return nil
	}
	return fmt.Errorf("want auto, always or never")
}

// String is the value as it is written.
func (c *Colour) String() string { return string(*c) }

// Type is the value's name in the help.
func (c *Colour) Type() string { return "WHEN" }

// On says whether output has colours, on a terminal or elsewhere.
func (c Colour) On(terminal bool) bool {
	if c == ColourAuto {
		return terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	}
	return c == ColourAlways
}
