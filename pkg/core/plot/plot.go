package plot

import (
	_ "embed"
	"encoding/json"
	"html/template"
	"io"
	"math"
)

var (
	//go:embed uplot/uPlot.iife.min.js
	uplotScript string
	//go:embed uplot/uPlot.min.css
	uplotStyle string
)

// Page is a report: remarks, a verdict in a sentence, a table whose rows begin with their name, and figures.
type Page struct {
	Title, Verdict string
	Remarks, Heads []string // Heads without that of the names
	Rows           [][]string
	Figures        []Figure
}

// Figure is one plot.
type Figure struct {
	Title string `json:"title"`
	X     string `json:"x"`
	Y     string `json:"y"`
	Log   bool   `json:"log"`  // of x
	Time  bool   `json:"time"` // x is seconds since 1970
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

// Write writes the page.
func (p *Page) Write(w io.Writer) error {
	data, err := json.Marshal(p.Figures) // with < as \u003c: a name can't end the script
	if err != nil {
		return err
	}
	return pageTemplate.Execute(w, struct {
		*Page
		Style  template.CSS
		Script template.JS
	}{p, template.CSS(uplotStyle), template.JS(uplotScript + "\nconst figures = " + string(data) + ";\n" + drawing)})
}

// drawing has colours that people with any kind of colour vision can tell apart (Okabe and Ito);
// the seventh line and those after it are dashed.
const drawing = `const colours = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];
figures.forEach((f, n) => {
  const lines = f.lines.filter(l => l.x);
  if (!lines.length) return;
  const box = document.getElementById("plot" + n), x = {time: f.time, distr: f.log ? 3 : 1};
  const first = Math.min(...lines.flatMap(l => l.x)), last = Math.max(...lines.flatMap(l => l.x));
  if (f.time && first === last) x.range = () => [first - 43200, last + 43200]; // of one day that day: uPlot would show three years
  new uPlot({
    width: Math.min(900, box.clientWidth), height: 420,
    scales: {x, y: {range: (u, min, max) => [0, Math.max(max, 1) * 1.05]}},
    axes: [{label: f.x}, {label: f.y}],
    series: [{label: f.x}].concat(lines.map((l, i) => ({label: l.name, stroke: colours[i % 6], width: 1.5, spanGaps: true,
      dash: i < 6 ? [] : [8, 4], points: {show: l.x.length < 3}}))),
  }, uPlot.join(lines.map(l => [l.x, l.y])), box);
});`

var pageTemplate = template.Must(template.New("report").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{{.Title}}</title>
<style>body{font:16px/1.5 sans-serif;max-width:60em;margin:2em auto;padding:0 1em}table{border-collapse:collapse}
td,th{padding:.2em .8em;border-bottom:1px solid #ddd;text-align:right}td:first-child{text-align:left;white-space:pre-wrap}
{{.Style}}</style></head>
<body><h1>{{.Title}}</h1><ul>{{range .Remarks}}<li>{{.}}</li>{{end}}</ul>{{with .Verdict}}<p>{{.}}</p>{{end}}
<table><tr><th></th>{{range .Heads}}<th>{{.}}</th>{{end}}</tr>
{{range .Rows}}<tr>{{range .}}<td>{{.}}</td>{{end}}</tr>
{{end}}</table>
{{range $i, $f := .Figures}}<h2>{{$f.Title}}</h2><div id="plot{{$i}}"></div>
{{end}}<script>{{.Script}}</script></body></html>
`))
