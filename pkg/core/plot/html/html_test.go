package html

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"gangd/pkg/core/plot"
)

// Reports have the colours of the page: a change of one is a change of the other.
func TestColoursAreThePages(t *testing.T) {
	page, err := os.ReadFile("../../../controller/web/static/style.css")
	if err != nil {
		t.Fatal(err)
	}
	colours := regexp.MustCompile(`--[a-z0-9]+: #[0-9a-f]{6};`)
	want, got := colours.FindAllString(string(page), -1), colours.FindAllString(reportStyle, -1)
	if len(want) < 30 || strings.Join(want, "\n") != strings.Join(got, "\n") {
		t.Errorf("%d colours, the page has %d:\n%v\n%v", len(got), len(want), got, want)
	}
}

// What a person named is text, whatever it is; a page without plots has no script.
func TestPage(t *testing.T) {
	var b strings.Builder
	p := &plot.Page{Title: "<b>", Period: "p", Tables: []plot.Table{{Words: []string{"Name"}, Heads: []string{"Hours"},
		Rows: []plot.Row{{Words: []string{"</table><script>"}, Cells: []plot.Cell{{Text: "3", Share: 0.5, Note: "-10 %", Tone: plot.Better}}}}, Total: &plot.Row{Words: []string{"All"}, Cells: []plot.Cell{{Text: "3"}}}}}}
	if err := Write(&b, p); err != nil {
		t.Fatal(err)
	}
	if s := b.String(); strings.Contains(s, "<script") || strings.Contains(s, "<b>") || !strings.Contains(s, `width:50%`) || !strings.Contains(s, `class="note better">-10 %`) || !strings.Contains(s, "<tfoot>") {
		t.Error(s)
	}
	p.Figures = []plot.Figure{{Title: "F", Unit: plot.Length, Lines: []plot.Line{{Name: "</script>", X: []float64{1}, Y: []float64{2}}}}}
	b.Reset()
	if err := Write(&b, p); err != nil {
		t.Fatal(err)
	}
	if s := b.String(); strings.Count(s, "</script>") != 1 || !strings.Contains(s, `<div id="plot0">`) {
		t.Errorf("%.500s", s)
	}
}
