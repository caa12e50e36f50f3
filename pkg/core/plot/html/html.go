package html

import (
	_ "embed"
	"encoding/json"
	"html/template"
	"io"

	"gangd/pkg/core/plot"
)

var (
	//go:embed uplot/uPlot.iife.min.js
	uplotScript string
	//go:embed uplot/uPlot.min.css
	uplotStyle string
	//go:embed report.css
	reportStyle string
	//go:embed report.js
	reportScript string
	//go:embed report.html
	reportPage string
)

// Write writes a page. One without plots has no script.
func Write(w io.Writer, p *plot.Page) error {
	shown := struct {
		*plot.Page
		Style  template.CSS
		Script template.JS
	}{Page: p, Style: template.CSS(reportStyle)}
	if len(p.Figures) > 0 {
		data, err := json.Marshal(p.Figures) // with < as \u003c: a name can't end the script
		if err != nil {
			return err
		}
		shown.Style = template.CSS(uplotStyle + "\n" + reportStyle)
		shown.Script = template.JS(uplotScript + "\nconst figures = " + string(data) + ";\n" + reportScript)
	}
	return pageTemplate().Execute(w, shown)
}

// pageTemplate is read when a page is drawn, once in a program.
func pageTemplate() *template.Template {
	return template.Must(template.New("report").Parse(reportPage))
}
