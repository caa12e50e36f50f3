package plot

import "math"

// Page is a report: of when its figures are, a verdict in a sentence, the few figures that matter, tables, plots, and
// remarks about what stands behind them.
type Page struct {
	Title, Period, Verdict string
	Tiles                  []Tile
	Tables                 []Table
	Figures                []Figure
	Remarks                []string
}

// Tile is one figure with its name, and what it is of.
type Tile struct{ Name, Value, Says string }

// Table has columns of words, then columns of figures.
type Table struct {
	Title        string
	Words, Heads []string // the headings of both
	Rows         []Row
	Total        *Row
}

// Row is a line of a table.
type Row struct {
	Words []string
	Cells []Cell
}

// Cell is one figure: Share, above 0 and at most 1, is drawn as a bar; Note stands beside the text, in the colour of its Tone.
type Cell struct {
	Text, Note string
	Tone       Tone
	Share      float64
}

// Bar is the share in percent, as it is drawn.
func (c Cell) Bar() int { return int(math.Round(100 * c.Share)) }

// Tone is how a difference is coloured.
type Tone string

// The tones: neither, better and worse than what is compared with.
const (
	Even   Tone = ""
	Better Tone = "better"
	Worse  Tone = "worse"
)

// Unit is what an axis counts.
type Unit string

// The units of axes: a number, seconds since 1970, and a length of time in seconds, whose axis is logarithmic.
const (
	Number Unit = ""
	Day    Unit = "day"
	Length Unit = "length"
)

// Figure is one plot.
type Figure struct {
	Title string `json:"title"`
	X     string `json:"x"`
	Y     string `json:"y"`
	Unit  Unit   `json:"unit"`  // of x
	Whole bool   `json:"whole"` // y is percent: the axis ends at 100
	Lines []Line `json:"lines"`
}

// Line has its points by rising x.
type Line struct {
	Name string    `json:"name"`
	X    []float64 `json:"x"`
	Y    []float64 `json:"y"`
}

// Rounded keeps what a plot can show: the rest would be most of the file.
func Rounded(v float64) float64 { return math.Round(v*1e4) / 1e4 }
