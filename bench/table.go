package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// figure is one measured number; higher says which way is up.
type figure struct {
	name   string
	value  float64
	unit   string
	higher bool // more is better
	need   need // zero: no floor is known of it
}

// table is what was measured, a row a figure.
type table struct {
	order []string
	rows  map[string]*row
}

// row has the values of each system, one a turn; the figure is the last of any.
type row struct {
	figure
	values map[string][]float64
}

func (t *table) add(system string, figures []figure) {
	for _, f := range figures {
		r := t.rows[f.name]
		if r == nil {
			r = &row{values: map[string][]float64{}}
			t.rows[f.name] = r
			t.order = append(t.order, f.name)
		}
		r.figure = f
		r.values[system] = append(r.values[system], f.value)
	}
}

func (t *table) print(out io.Writer, systems []system, f floor) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	head := "name\tgangd\t"
	for _, s := range systems {
		if s.name() != "gangd" {
			head += s.name() + "\tratio\t"
		}
	}
	fmt.Fprintln(w, head+"floor\tof floor\t")
	for _, name := range t.order {
		r := t.rows[name]
		cells := []string{name, r.cell("gangd")}
		for _, s := range systems {
			if s.name() != "gangd" {
				cells = append(cells, r.cell(s.name()), times(r.ratio(s.name())))
			}
		}
		low, multiple := r.floor(f)
		least := "-"
		if low > 0 {
			least = fmt.Sprintf("%.1f %s", low, r.unit)
		}
		fmt.Fprintln(w, strings.Join(append(cells, least, times(multiple)), "\t")+"\t")
	}
	w.Flush()
}

func (r *row) cell(system string) string {
	if len(r.values[system]) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %s", median(r.values[system]), r.unit)
}

// ratio is how many times better gangd is than another, the median of turns; 0: not known.
func (r *row) ratio(other string) float64 {
	var all []float64
	for i, g := range r.values["gangd"] {
		if i >= len(r.values[other]) || g <= 0 || r.values[other][i] <= 0 {
			continue
		}
		ratio := r.values[other][i] / g
		if r.higher {
			ratio = 1 / ratio
		}
		all = append(all, ratio)
	}
	return median(all)
}

// floor is what the machine takes for the row, in its unit, and how many times as much gangd does; 0: not known.
func (r *row) floor(f floor) (least, multiple float64) {
	own := median(r.values["gangd"])
	if least = r.need.of(f); least <= 0 || own <= 0 {
		return 0, 0
	}
	if r.higher { // so many a second
		least = 1000 / least
		return least, least / own
	}
	return least, own / least
}

func times(v float64) string {
	if v <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.1fx", v)
}
