package sqlstore

import (
	"fmt"
	"slices"
	"strings"
)

// Kind is what a column holds.
type Kind int

const (
	Int Kind = iota
	Text
	Bytes
)

// Column of a table.
type Column struct {
	Name string
	Kind Kind
}

// Table says what a row of a table is.
type Table struct {
	Name    string
	Columns []Column
	Key     int // how many of the first columns make the key
	// Changed are the columns that a row put over another changes; none: there is no other, or it
	// is the same.
	Changed []string
	// Added are those to which it adds.
	Added []string
	// Same: a row that is put again is what it was, or was cut short and is whole again.
	Same bool
}

// The tables of a commit.
var (
	Spec = &Table{Name: "spec", Columns: columns("hash", "data"), Key: 1, Same: true}
	// What else a job has never changes; its spec does only where it asks for something else while it waits.
	Job = &Table{Name: "job", Columns: columns("id#", "array_id#", `"user"`, "spec", "submit#", "data", "ended#"), Key: 1,
		Changed: []string{"spec", "data", "ended"}}
	Rank    = &Table{Name: "rank", Columns: columns("id#", "data"), Key: 1, Changed: data}
	Epoch   = &Table{Name: "epoch", Columns: columns("job#", "epoch#", "data"), Key: 2, Changed: data}
	Step    = &Table{Name: "step", Columns: columns("job#", "epoch#", "step#", "data"), Key: 3, Changed: data}
	Measure = &Table{Name: "measure", Columns: columns("job#", "epoch#", "member#", "data"), Key: 3, Changed: data}
	Ledger  = &Table{Name: "ledger", Columns: columns(append(slices.Clone(ledgerKey), ledgerFigures...)...), Key: len(ledgerKey),
		Added: names(ledgerFigures)}
	Node        = &Table{Name: "node", Columns: columns("name", "data"), Key: 1, Changed: data}
	Reservation = &Table{Name: "reservation", Columns: columns("name", "data"), Key: 1, Changed: data}
	Partition   = &Table{Name: "partition", Columns: columns("name", "data"), Key: 1, Changed: data}
	Crontab     = &Table{Name: "crontab", Columns: columns("name", "data"), Key: 1, Changed: data}
	Letter      = &Table{Name: "letter", Columns: columns("id#", "data"), Key: 1, Changed: data}
	Claims      = &Table{Name: "claims", Columns: columns("one#", "data"), Key: 1, Changed: data}
	Event       = &Table{Name: "event", Columns: columns("seq#", "job#", "data"), Key: 1}
)

var data = []string{"data"}

// DropUnused is the statement that drops a spec ($1) that no job has.
const DropUnused = "DELETE FROM spec WHERE hash = $1 AND NOT EXISTS (SELECT 1 FROM job WHERE substr(spec, 1, 8) = substr($1, 1, 8) AND " +
	"spec = $1)"

// ledgerKey and ledgerFigures are those of [api.LedgerKey] and [api.LedgerFigures]. Sum is a checksum that can be added
// to as the figures are: see ledgerSum.
var (
	ledgerKey     = []string{"day", `"user"`, "account", `"partition"`, "card_type", "cause"}
	ledgerFigures = []string{"attempts#", "card_ms#", "cpu_ms#", "lost_card_ms#", "lost_cpu_ms#", "seen_card_ms#", "busy_card_ms#",
		"idle_card_ms#", "seen_cpu_ms#", "used_cpu_ms#",
		"joules#", "starts#", "wait_ms#", "start_card_ms#", "sum#"}
)

func names(columns []string) (out []string) {
	for _, c := range columns {
		out = append(out, strings.TrimSuffix(c, "#"))
	}
	return out
}

// Batched are the tables that a commit writes.
var Batched = []*Table{Spec, Job, Rank, Epoch, Step, Measure, Ledger, Node, Reservation, Partition, Crontab, Letter, Claims, Event}

// Beside are those that are written beside commits.
var Beside = []*Table{
	{Name: "checkpoint", Columns: columns("id#", "job#", "epoch#", "step#", "rank#", "put#", "bytes#", "key"), Key: 1},
	{Name: "checkpoint_piece", Columns: columns("id#", "data*"), Key: 1},
	{Name: "release", Columns: columns("id#", "job#", "epoch#", "step#", "name", "keys"), Key: 1},
	{Name: "gone", Columns: columns("job#"), Key: 1},
	{Name: "run", Columns: columns("id#", "name", "began#"), Key: 1},
}

// columns of texts, those with a # of integers, with a * of bytes.
func columns(names ...string) (all []Column) {
	for _, n := range names {
		c := Column{Name: strings.TrimRight(n, "#*")}
		switch {
		case strings.HasSuffix(n, "*"):
			c.Kind = Bytes
		case !strings.HasSuffix(n, "#"):
			c.Kind = Text
		}
		all = append(all, c)
	}
	return all
}

// Names are the columns as SQL lists them.
func (t *Table) Names() string {
	var names []string
	for _, c := range t.Columns {
		names = append(names, c.Name)
	}
	return strings.Join(names, ", ")
}

// KeyNames are those of the key.
func (t *Table) KeyNames() string {
	return (&Table{Columns: t.Columns[:t.Key]}).Names()
}

// Put is the statement that puts rows, from what stands for them: "VALUES (...)" or a SELECT.
func (t *Table) Put(rows string) string {
	text := fmt.Sprintf("INSERT INTO %s (%s) %s", t.Name, t.Names(), rows)
	switch {
	case t.Same:
		text += fmt.Sprintf(" ON CONFLICT (%s) DO UPDATE SET data = excluded.data WHERE length(excluded.data) > length(%s.data)", t.KeyNames(),
			t.Name)
	case len(t.Changed)+len(t.Added) > 0:
		var set []string
		for _, c := range t.Changed {
			set = append(set, c+" = excluded."+c)
		}
		for _, c := range t.Added {
			set = append(set, fmt.Sprintf("%s = %s.%s + excluded.%s", c, t.Name, c, c))
		}
		text += fmt.Sprintf(" ON CONFLICT (%s) DO UPDATE SET %s", t.KeyNames(), strings.Join(set, ", "))
	}
	return text
}
