// Package drawn draws tables for people by tablewriter. It stands alone, in gtable, because the
// module takes a millisecond to load, half of what a command needs to start: commands that
// write into a pipe must not pay for it.
//
// Begin with Table.Draw. It must not know what is in a table.
package drawn

import (
	"io"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/tw"
)

// Table is what is drawn: cells that are as wide as their columns already.
type Table struct {
	Header []string   `json:"header,omitempty"`
	Rows   [][]string `json:"rows"`
}

// Draw writes the table without lines, one blank behind each column.
func (t *Table) Draw(w io.Writer) error {
	out := tablewriter.NewTable(w,
		tablewriter.WithRendition(tw.Rendition{Borders: tw.BorderNone, Symbols: tw.NewSymbols(tw.StyleNone),
			Settings: tw.Settings{Separators: tw.SeparatorsNone, Lines: tw.LinesNone}}),
		tablewriter.WithTrimSpace(tw.Off), tablewriter.WithHeaderAutoFormat(tw.Off), tablewriter.WithHeaderAutoWrap(tw.WrapNone),
		tablewriter.WithRowAutoWrap(tw.WrapNone), tablewriter.WithPadding(tw.Padding{Right: " ", Overwrite: true}),
		tablewriter.WithAlignment(tw.Alignment{tw.AlignLeft}))
	if t.Header != nil {
		out.Header(t.Header)
	}
	for _, row := range t.Rows {
		if err := out.Append(row); err != nil {
			return err
		}
	}
	return out.Render()
}
