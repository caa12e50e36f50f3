package cli

import (
	"cmp"
	"slices"
	"strings"

	"gangd/pkg/core/nearest"
	"gangd/pkg/core/table/column"
	"gangd/pkg/core/table/jobfield"
)

// row is what is shown of a job, kept in pkg/core/table/jobfield, which squeue prints from too.
type row = *jobfield.Row

// readFormat reads squeue's -o, or its -O where long is given. What squeue passes over with a
// word on stderr is refused.
func readFormat[R any](set *column.Set[R], format, long string) (line column.Line[R], err error) {
	wrong := func(explain func(what string) error) func(string) {
		return func(what string) {
			if err == nil {
				err = explain(what)
			}
		}
	}
	if long != "" {
		parts := strings.Split(long, ",")
		for i := range parts {
			parts[i] = strings.TrimSpace(parts[i])
		}
		line = set.Names(strings.Join(parts, ","), wrong(func(name string) error { return noField(set, name) }))
		return line, cmp.Or(err, tooWide(&line))
	}
	line = set.Letters(format, wrong(func(letter string) error {
		if letter == "" {
			return noEnd(format)
		}
		return noLetter(set, letter)
	}))
	if err == nil && strings.HasSuffix(format, "%") { // which squeue takes for nothing
		err = noEnd(format)
	}
	if err == nil && len(line.Columns) == 0 {
		err = Usagef("no field in the format %q: fields are letters behind a %%, as in '%%i %%t' (man gqueue lists them)", line.Prefix)
	}
	return line, cmp.Or(err, tooWide(&line))
}

func noEnd(format string) error {
	return Usagef("the format ends in %q: a letter must follow (man gqueue lists them)", format[strings.LastIndexByte(format, '%'):])
}

func tooWide[R any](line *column.Line[R]) error {
	for _, c := range line.Columns {
		if c.Width > column.MaxWidth {
			return Usagef("a column can't be %d wide: at most %d", c.Width, column.MaxWidth)
		}
	}
	return nil
}

func noLetter[R any](set *column.Set[R], letter string) error {
	var known strings.Builder
	for _, c := range set.Letters("%all", nil).Columns {
		known.WriteByte(c.Letter)
	}
	return Usagef("unknown format letter %%%s: known are %s (man gqueue says what they are)", letter, known.String())
}

func noField[R any](set *column.Set[R], name string) error {
	var names []string
	for i := range set.Fields {
		names = append(names, set.Fields[i].Names...)
	}
	known := strings.Join(slices.Sorted(slices.Values(names)), ", ")
	if slices.Contains(refusedNames, strings.ToLower(name)) {
		return Usagef("%s can't be shown: gangd has nothing of the kind; fields are %s", name, known)
	}
	if near := nearest.Of(name, names); near != "" {
		return Usagef("unknown field %q: did you mean %s? (man gqueue lists them)", name, near)
	}
	return Usagef("unknown field %q: fields are %s", name, known)
}

// readSort reads squeue's -S: letters of -o, and here long names too, each with + or - before it.
func readSort[R any](set *column.Set[R], order string) ([]column.Key[R], error) {
	var keys []column.Key[R]
	for _, part := range strings.Split(order, ",") {
		name, down := strings.CutPrefix(strings.TrimSpace(part), "-")
		if !down {
			name = strings.TrimPrefix(name, "+")
		}
		field := set.Name(name)
		switch {
		case name == "":
			return nil, Usagef("an empty key in the sort order %q: give letters of -o, as in 'P,t,-p'", order)
		case len(name) == 1:
			if field = set.Letter(name[0]); field == nil {
				return nil, noLetter(set, name)
			}
		case field == nil:
			return nil, noField(set, name)
		}
		keys = append(keys, column.Key[R]{Field: field, Down: down})
	}
	return keys, nil
}

// refusedNames are squeue's long names that stand for something gangd does not have.
var refusedNames = strings.Fields(`admin_comment allocsid associd boardspernode burstbuffer burstbufferstate
	cluster clusterfeature container cpufreq cpus-per-tres deadline delayboot derivedec groupid groupname
	hetjobid hetjobidset hetjoboffset lastschedeval maxcpus maxnodes mcslabel mem-per-tres mintime network
	nodes ntperboard ntpercore ntpersocket origin originraw preempttime prefer profile reboot reqswitch
	requeue resizetime resvport selectjobinfo siblingsactive siblingsactiveraw siblingsviable
	siblingsviableraw sperboard stepid stepname stepstate system_comment tres-alloc tres-bind tres-freq
	tres-per-job tres-per-node tres-per-socket tres-per-step tres-per-task wait4switch`)
