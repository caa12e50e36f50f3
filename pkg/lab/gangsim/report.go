package gangsim

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"gangd/pkg/core/plot"
	"gangd/pkg/core/plot/html"
)

// writeReport writes a report for people into dir: report.md, and report.html with the plots in
// it. It makes the directory, and writes over what an earlier report left there.
func writeReport(dir string, in *input, runs []*played) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("--report: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "report.md"), markdown(in, runs), 0o644); err != nil {
		return fmt.Errorf("--report: %w", err)
	}
	page, err := page(in, runs)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "report.html"), page, 0o644); err != nil {
		return fmt.Errorf("--report: %w", err)
	}
	return nil
}

func markdown(in *input, runs []*played) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n\n", in.title())
	for _, n := range in.remarks() {
		fmt.Fprintf(&b, "- %s\n", n)
	}
	if s := verdict(runs); s != "" {
		fmt.Fprintf(&b, "\n%s\n", s)
	}
	for _, g := range groupsOf(runs) {
		fmt.Fprintf(&b, "\n## %s\n| |", g.title)
		for _, r := range runs {
			fmt.Fprintf(&b, " %s |", strings.ReplaceAll(r.policy.name, "|", `\|`))
		}
		b.WriteString("\n|---|" + strings.Repeat("---:|", len(runs)) + "\n")
		for _, row := range g.rows {
			fmt.Fprintf(&b, "| %s |", row.name)
			for _, r := range runs {
				text := row.of(r)
				if change, _ := row.change(runs[0], r); change != "" {
					text += ", " + change
				}
				fmt.Fprintf(&b, " %s |", text)
			}
			b.WriteString("\n")
		}
	}
	b.WriteString("\nThe plots are in report.html.\n")
	return b.Bytes()
}

// verdict is the comparison in a sentence: what most people look for first.
func verdict(runs []*played) string {
	if len(runs) < 2 || runs[0].Delay.Average <= 0 {
		return ""
	}
	var parts []string
	for _, r := range runs[1:] {
		change := r.Delay.Average/runs[0].Delay.Average - 1
		word := "longer"
		if change < 0 {
			word, change = "shorter", -change
		}
		parts = append(parts, fmt.Sprintf("with %s the average wait is %.0f %% %s than with %s, the longest %s instead of %s",
			r.policy.name, 100*change, word, runs[0].policy.name, span(r.Delay.Max), span(runs[0].Delay.Max)))
	}
	return strings.ToUpper(parts[0][:1]) + strings.Join(parts, "; ")[1:] + "."
}

// page has the three figures that matter of each run, then all by groups, with how far each is from the first run's.
func page(in *input, runs []*played) ([]byte, error) {
	p := plot.Page{Title: filepath.Base(in.trace.File) + " on " + in.cluster.Name, Period: fmt.Sprintf("%s jobs, submitted over %.1f days",
		thousands(float64(len(in.trace.Jobs))), in.trace.Span().Hours()/24),
		Remarks: in.remarks(), Verdict: verdict(runs), Figures: figures(runs)}
	for _, r := range runs {
		name := ""
		if len(runs) > 1 {
			name = r.policy.name + ": "
		}
		p.Tiles = append(p.Tiles, plot.Tile{Name: name + "average queue delay", Value: inWords(r.Delay.Average), Says: "longest " +
			inWords(r.Delay.Max)},
			plot.Tile{Name: name + "average completion time", Value: inWords(r.Completion.Average), Says: "all done after " + inWords(r.Makespan)},
			plot.Tile{Name: name + "cards in use", Value: percent(r.Utilisation), Says: fmt.Sprintf("%.0f card-hours done again",
				r.LostSeconds/3600)})
		if len(runs) > 2 { // of many runs the table says it better
			p.Tiles = nil
		}
	}
	for _, g := range groupsOf(runs) {
		t := plot.Table{Title: g.title, Words: []string{""}}
		for _, r := range runs {
			t.Heads = append(t.Heads, r.policy.name)
		}
		for _, row := range g.rows {
			line := plot.Row{Words: []string{row.name}}
			for _, r := range runs {
				c := plot.Cell{Text: row.of(r)}
				c.Note, c.Tone = row.change(runs[0], r)
				line.Cells = append(line.Cells, c)
			}
			t.Rows = append(t.Rows, line)
		}
		p.Tables = append(p.Tables, t)
	}
	var b bytes.Buffer
	err := html.Write(&b, &p)
	return b.Bytes(), err
}
