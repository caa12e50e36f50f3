// Package drawn draws tables for people by tablewriter. It is linked by the commands that people look
// at (ginfo, gctl, gacct, greport) and not by those that scripts call in loops: the module takes a
// millisecond to load, a third of what gqueue needs in all.
//
// Begin with Draw. It must not know what is in a table.
package drawn

import (
	"io"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/tw"
)

// Draw writes a table without lines, one blank behind each column. Cells are as wide as their columns
// already; one of several lines takes as many rows. A nil header is none.
func Draw(w io.Writer, header []string, rows [][]string) error {
	out := tablewriter.NewTable(w,
		tablewriter.WithRendition(tw.Rendition{Borders: tw.BorderNone, Symbols: tw.NewSymbols(tw.StyleNone),
			Settings: tw.Settings{Separators: tw.SeparatorsNone, Lines: tw.LinesNone}}),
		tablewriter.WithTrimSpace(tw.Off), tablewriter.WithHeaderAutoFormat(tw.Off), tablewriter.WithHeaderAutoWrap(tw.WrapNone),
		tablewriter.WithRowAutoWrap(tw.WrapNone), tablewriter.WithPadding(tw.Padding{Right: " ", Overwrite: true}),
		tablewriter.WithAlignment(tw.Alignment{tw.AlignLeft}))
	if header != nil {
		out.Header(header)
	}
	for _, row := range rows {
		if err := out.Append(row); err != nil {
			return err
		}
	}
	return out.Render()
}
