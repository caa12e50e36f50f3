package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/clipperhouse/displaywidth"

	"gangd/pkg/core/table/column"
)

// maxDrawnRows is up to where tablewriter draws: it takes 20-27 us a row, the plain writer
// 6, and nobody looks at more rows than this.
const maxDrawnRows = 1000

// tableColumn is one column of a table.
type tableColumn struct {
	head  string
	width int  // at least so wide; 0: as its content
	right bool // right-justified
	keep  bool // never shortened, even where the terminal is too narrow
	cut   bool // exactly width wide: longer text is cut, as squeue does with -o '%.8j'
	// suffix stands behind the column; one blank when empty.
	suffix string
}

// table is rows of text under a header.
type table struct {
	prefix   string // stands before each line
	cols     []tableColumn
	rows     [][]string
	noHeader bool
	// style gives the colour of a cell; nil: none.
	style func(row, col int) style
}

// write puts the table on a screen: shortened to fit a terminal, whole anywhere else.
func (t *table) write(s *screen) error {
	t.sanitise()
	widths := t.widths()
	if s.terminal {
		t.fit(widths, s.width)
	}
	if s.terminal && len(t.rows) <= maxDrawnRows && t.uniform() {
		return t.draw(s, widths)
	}
	return t.print(s, widths)
}

// sanitise replaces control characters: a job's name must not move the reader's cursor.
func (t *table) sanitise() {
	for _, row := range t.rows {
		for i, cell := range row {
			row[i] = column.Printable(cell)
		}
	}
}

// uniform reports whether one blank separates all columns, which is what draw does.
func (t *table) uniform() bool {
	if t.prefix != "" {
		return false
	}
	for i, c := range t.cols {
		if c.suffix != "" && c.suffix != " " || c.cut && c.suffix == "" && i < len(t.cols)-1 {
			return false
		}
	}
	return true
}

func (t *table) widths() []int {
	widths := make([]int, len(t.cols))
	for i, c := range t.cols {
		widths[i] = c.width
		if !c.cut && !t.noHeader {
			widths[i] = max(c.width, textWidth(c.head))
		}
	}
	for _, row := range t.rows {
		for i, cell := range row {
			if !t.cols[i].cut {
				widths[i] = max(widths[i], textWidth(cell))
			}
		}
	}
	return widths
}

// fit makes the table as narrow as the terminal: first blank room goes, from the left;
// then text, from the widest column; the last column then takes what is left, but never
// less than 8.
func (t *table) fit(widths []int, room int) {
	total := max(len(widths)-1, 0)
	for _, w := range widths {
		total += w
	}
	for i := range widths {
		spare := max(min(widths[i]-t.contentWidth(i), total-room), 0)
		widths[i] -= spare
		total -= spare
	}
	for ; total > room; total-- {
		most, at := 0, -1
		for i, c := range t.cols {
			floor := max(c.width, textWidth(c.head))
			if excess := widths[i] - floor; !c.keep && !c.cut && excess > most {
				most, at = excess, i
			}
		}
		if at < 0 {
			break
		}
		widths[at]--
	}
	if last := len(widths) - 1; last >= 0 && total > room && !t.cols[last].keep && !t.cols[last].cut {
		widths[last] = max(widths[last]-(total-room), 8)
	}
}

// contentWidth is how wide a column must be to show all of itself.
func (t *table) contentWidth(i int) int {
	if t.cols[i].cut {
		return t.cols[i].width
	}
	w := 0
	if !t.noHeader {
		w = textWidth(t.cols[i].head)
	}
	for _, row := range t.rows {
		w = max(w, textWidth(row[i]))
	}
	return w
}

// print is the plain writer, for pipes and for very long tables.
func (t *table) print(s *screen, widths []int) error {
	out := bufio.NewWriterSize(s.w, 64<<10)
	line := make([]byte, 0, 256)
	put := func(row int, cell func(int) string) {
		line = append(line[:0], t.prefix...)
		for i := range t.cols {
			line = t.appendCell(s, line, row, i, cell(i), widths[i])
		}
		// Blanks at the end of a line only wrap narrow windows.
		line = bytes.TrimRight(line, " ")
		out.Write(append(line, '\n'))
	}
	if !t.noHeader {
		put(-1, func(i int) string { return t.cols[i].head })
	}
	for r, row := range t.rows {
		put(r, func(i int) string { return row[i] })
	}
	return out.Flush()
}

func (t *table) appendCell(s *screen, line []byte, row, i int, cell string, width int) []byte {
	c := &t.cols[i]
	w := textWidth(cell)
	if width > 0 && w > width {
		cell = shorten(cell, width, s.terminal && !c.cut)
		w = textWidth(cell)
	}
	pad := max(width-w, 0)
	if c.right {
		line = appendBlanks(line, pad)
	}
	if s.colour && row >= 0 && t.style != nil {
		line = append(line, s.paint(t.style(row, i), cell)...)
	} else {
		line = append(line, cell...)
	}
	last := i == len(t.cols)-1
	if !c.right && (!last || c.suffix != "") {
		line = appendBlanks(line, pad)
	}
	switch {
	case c.suffix != "":
		line = append(line, c.suffix...)
	case !c.cut && !last:
		line = append(line, ' ')
	}
	return line
}

func appendBlanks(b []byte, n int) []byte {
	const blanks = "                                "
	for ; n > len(blanks); n -= len(blanks) {
		b = append(b, blanks...)
	}
	return append(b, blanks[:n]...)
}

// draw has gtable draw the table, borderless, one blank between columns. Where it is not
// beside the command the same table is printed here.
func (t *table) draw(s *screen, widths []int) error {
	self, err := os.Executable()
	if err != nil {
		return t.print(s, widths)
	}
	text, err := json.Marshal(t.cells(s, widths))
	if err != nil {
		return err
	}
	cmd := exec.Command(filepath.Join(filepath.Dir(self), "gtable"))
	cmd.Stdin = bytes.NewReader(text)
	drawn, err := cmd.Output()
	if err != nil {
		return t.print(s, widths)
	}
	return writeTrimmed(s, drawn)
}

// drawing is what gtable takes, see pkg/client/drawn.
type drawing struct {
	Header []string   `json:"header,omitempty"`
	Rows   [][]string `json:"rows"`
}

// cells is the table with every cell as wide as its column.
func (t *table) cells(s *screen, widths []int) *drawing {
	d := &drawing{Rows: make([][]string, len(t.rows))}
	if !t.noHeader {
		d.Header = t.padded(s, -1, widths)
	}
	for r := range t.rows {
		d.Rows[r] = t.padded(s, r, widths)
	}
	return d
}

// padded is a row with every cell exactly as wide as its column, so that no later opinion
// about widths (tablewriter's, of colours and wide letters) can move a column.
func (t *table) padded(s *screen, row int, widths []int) []string {
	cells := make([]string, len(t.cols))
	for i, c := range t.cols {
		cell := c.head
		if row >= 0 {
			cell = t.rows[row][i]
		}
		if textWidth(cell) > widths[i] {
			cell = shorten(cell, widths[i], !c.cut)
		}
		blanks := strings.Repeat(" ", max(widths[i]-textWidth(cell), 0))
		if row >= 0 && t.style != nil {
			cell = s.paint(t.style(row, i), cell)
		}
		if c.right {
			cells[i] = blanks + cell
		} else {
			cells[i] = cell + blanks
		}
	}
	return cells
}

func writeTrimmed(s *screen, text []byte) error {
	out := bufio.NewWriter(s.w)
	for line := range bytes.Lines(text) {
		out.Write(bytes.TrimRight(line, " \n"))
		out.WriteByte('\n')
	}
	return out.Flush()
}

// textWidth is how many columns a terminal takes for s.
func textWidth(s string) int {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return displaywidth.String(s)
		}
	}
	return len(s)
}

// shorten cuts s to width columns, with an ellipsis where a person reads it.
func shorten(s string, width int, ellipsis bool) string {
	tail := ""
	if ellipsis && width > 1 {
		tail, width = "…", width-1
	}
	used := 0
	for i, r := range s {
		used += textWidth(string(r))
		if used > width {
			return s[:i] + tail
		}
	}
	return s
}

// bars writes the table whole with a bar between the cells. A bar or a line end inside a cell
// would shift every column behind it, so both become a question mark.
func (t *table) bars(w io.Writer) error {
	var b strings.Builder
	line := func(n int, cell func(i int) string) {
		for i := range n {
			if i > 0 {
				b.WriteByte('|')
			}
			b.WriteString(strings.ReplaceAll(column.Printable(cell(i)), "|", "?"))
		}
		b.WriteByte('\n')
	}
	if !t.noHeader {
		line(len(t.cols), func(i int) string { return t.cols[i].head })
	}
	for _, row := range t.rows {
		line(len(row), func(i int) string { return row[i] })
	}
	_, err := io.WriteString(w, b.String())
	return err
}
