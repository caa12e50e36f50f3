package cli

import (
	"slices"
	"strconv"
	"strings"

	"gangd/pkg/nearest"
	"gangd/pkg/table/jobfield"
)

// What is shown of a job is kept in pkg/table/jobfield, which squeue prints from too.
type (
	row   = jobfield.Row
	field = jobfield.Field
)

// The formats of squeue, each "%[[.]size]type[suffix]".
const (
	formatDefault = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
	formatLong    = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"
	formatStart   = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R"
)

// shown is a field in a format: how wide, how justified, and what stands behind it.
type shown struct {
	*field
	width  int
	right  bool
	suffix string
}

// parseFormat reads squeue's -o. Text before the first field stands before every line, in
// squeue and here.
func parseFormat(s string) (prefix string, out []shown, err error) {
	if s == "%all" {
		return "", everyField(), nil
	}
	for s != "" {
		at := strings.IndexByte(s, '%')
		if at < 0 || at > 0 {
			text := s
			if at > 0 {
				text = s[:at]
			}
			if len(out) == 0 {
				prefix += text
			} else {
				out[len(out)-1].suffix += text
			}
			s = s[len(text):]
			continue
		}
		f, rest, err := parseFormatField(s)
		if err != nil {
			return "", nil, err
		}
		out = append(out, f)
		s = rest
	}
	if len(out) == 0 {
		return "", nil, Usagef("no field in the format %q: fields are letters behind a %%, as in '%%i %%t' (man gqueue lists them)", prefix)
	}
	return prefix, out, nil
}

// parseFormatField reads one "%.18i" at the head of s.
func parseFormatField(s string) (shown, string, error) {
	var f shown
	i := 1
	if i < len(s) && s[i] == '.' {
		f.right = true
		i++
	}
	from := i
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	var err error
	if f.width, err = parseWidth(s[from:i]); err != nil {
		return f, "", err
	}
	if i == len(s) {
		return f, "", Usagef("the format ends in %q: a letter must follow (man gqueue lists them)", s)
	}
	f.field, err = fieldByLetter(s[i])
	return f, s[i+1:], err
}

// parseWidth bounds a column: a typo must not become a gigabyte of blanks.
func parseWidth(s string) (int, error) {
	if s == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n > 4096 {
		return 0, Usagef("a column can't be %s wide: at most 4096", s)
	}
	return n, nil
}

func fieldByLetter(letter byte) (*field, error) {
	if f := jobfield.Gqueue.Letter(letter); f != nil {
		return f, nil
	}
	return nil, Usagef("unknown format letter %%%c: known are %s (man gqueue says what they are)", letter, knownLetters())
}

func knownLetters() string {
	var b strings.Builder
	for _, f := range everyField() {
		b.WriteByte(f.Letter)
	}
	return b.String()
}

// everyField is squeue's %all: all fields with letters, a bar between them.
func everyField() []shown {
	var out []shown
	for _, c := range jobfield.Gqueue.Letters("%all", nil).Columns {
		out = append(out, shown{field: c.Field, suffix: c.Suffix})
	}
	return out
}

// parseLongFormat reads squeue's -O: "name[:[.][size][suffix]],...".
func parseLongFormat(s string) ([]shown, error) {
	var out []shown
	for _, part := range strings.Split(s, ",") {
		name, spec, _ := strings.Cut(strings.TrimSpace(part), ":")
		f, err := fieldByName(name)
		if err != nil {
			return nil, err
		}
		sh := shown{field: f, width: 20}
		spec, sh.right = strings.CutPrefix(spec, ".")
		digits := len(spec) - len(strings.TrimLeft(spec, "0123456789"))
		if digits > 0 {
			if sh.width, err = parseWidth(spec[:digits]); err != nil {
				return nil, err
			}
		}
		sh.suffix = spec[digits:]
		out = append(out, sh)
	}
	return out, nil
}

func fieldByName(name string) (*field, error) {
	if f := jobfield.Gqueue.Name(name); f != nil {
		return f, nil
	}
	lower := strings.ToLower(name)
	var names []string
	for i := range jobfield.Gqueue.Fields {
		names = append(names, jobfield.Gqueue.Fields[i].Names...)
	}
	if slices.Contains(refusedNames, lower) {
		return nil, Usagef("%s can't be shown: gangd has nothing of the kind; fields are %s", name, strings.Join(slices.Sorted(slices.Values(names)), ", "))
	}
	if near := nearest.Of(name, names); near != "" {
		return nil, Usagef("unknown field %q: did you mean %s? (man gqueue lists them)", name, near)
	}
	return nil, Usagef("unknown field %q: fields are %s", name, strings.Join(slices.Sorted(slices.Values(names)), ", "))
}

// refusedNames are squeue's long names that stand for something gangd does not have.
var refusedNames = strings.Fields(`admin_comment allocsid associd boardspernode burstbuffer burstbufferstate
	cluster clusterfeature container cpufreq cpus-per-tres deadline delayboot derivedec groupid groupname
	hetjobid hetjobidset hetjoboffset lastschedeval maxcpus maxnodes mcslabel mem-per-tres mintime network
	nodes ntperboard ntpercore ntpersocket origin originraw preempttime prefer profile reboot reqswitch
	requeue resizetime resvport selectjobinfo siblingsactive siblingsactiveraw siblingsviable
	siblingsviableraw sperboard stepid stepname stepstate system_comment tres-alloc tres-bind tres-freq
	tres-per-job tres-per-node tres-per-socket tres-per-step tres-per-task wait4switch`)
