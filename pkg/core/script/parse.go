package script

import (
	"slices"
	"strconv"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/nearest"
)

// Flags reads the command line: the options, and what begins with the first word that is
// none (the script and its arguments). "--" ends the options.
func Flags(args []string) (settings []Setting, rest []string, err error) {
	return flags(args, false)
}

// SlurmFlags is Flags for a command line of sbatch's: a beginning of a name is one of sbatch's
// names, and gangd's own are written out.
func SlurmFlags(args []string) (settings []Setting, rest []string, err error) {
	return flags(args, true)
}

func flags(args []string, slurm bool) (settings []Setting, rest []string, err error) {
	r := reader{source: FromFlag, slurm: slurm}
	rest, err = r.read(args)
	for err == nil && len(rest) > 0 && rest[0] == Separator {
		if r.component++; r.component >= api.MaxRoles {
			return nil, nil, r.refuse(0, "more than "+strconv.Itoa(api.MaxRoles)+" components", "join some of them")
		}
		rest, err = r.read(rest[1:])
	}
	return r.out, rest, err
}

// Separator stands between the options of two components of a heterogeneous job.
const Separator = ":"

// reader reads options from words, the same way for a directive and a command line.
type reader struct {
	source Source
	file   string
	line   int
	cols   []int // of the words; none: a command line
	out    []Setting
	// component is that of the options to come, of a heterogeneous job.
	component int
	slurm     bool // abbreviations are of sbatch's names alone
}

// read takes words until one is no option, and gives what is left.
func (r *reader) read(words []string) ([]string, error) {
	g := cmdline.Grammar[Ask]{Options: Options, Stop: true, Equals: true}
	slurms := r.slurm || r.source == FromSBATCH
	if slurms {
		// None of sbatch's own names speaks of ranks.
		g.Cut = func(o *Option, name string) bool { return o.List != Own && !strings.Contains(name, "rank") }
	}
	settings, rest, err := g.Parse(words)
	for _, s := range settings {
		if s.Option.OnLine && r.source != FromFlag {
			return nil, r.refuse(s.At, "--"+s.Name+" belongs on the command line", "remove it here")
		}
		r.out = append(r.out, Setting{Setting: s, Source: r.source, Pos: r.pos(s.At), Component: r.component,
			Unset: slurms && s.Given && s.Value == "" && TakesEmpty(s.Option.Long)})
	}
	if err != nil {
		return nil, r.unreadable(err.(*cmdline.Error))
	}
	return rest, nil
}

func (r *reader) pos(word int) Pos {
	p := Pos{File: r.file, Line: r.line}
	if word < len(r.cols) {
		p.Col = r.cols[word]
	}
	return p
}

func (r *reader) refuse(word int, msg, hint string) *Error {
	return &Error{Pos: r.pos(word), Msg: msg, Hint: hint, Usage: r.source == FromFlag}
}

// unreadable says in words of ours what can't be read, with the C library's beside them.
func (r *reader) unreadable(e *cmdline.Error) error {
	slices.Sort(e.Fits)
	msg, hint := "", "write --"+e.Name+"="+e.Arg
	switch letter := string(rune(e.Letter)); e.Fault {
	case cmdline.Unknown:
		msg, hint = "unknown option --"+e.Name, "gsubmit --help lists the options"
		if n := nearestName(e.Name); n != "" {
			hint = "did you mean --" + n + "?"
		}
	case cmdline.Ambiguous:
		msg, hint = "ambiguous option --"+e.Name, "it may be --"+strings.Join(e.Fits, ", --")
	case cmdline.NoLetter:
		msg, hint = "unknown option -"+letter, "gsubmit --help lists the options"
	case cmdline.Superfluous:
		msg, hint = "--"+e.Name+" takes no value", "write --"+e.Name
	case cmdline.Missing:
		msg = "--" + e.Name + " needs a value"
		if e.Letter != 0 {
			msg = "-" + letter + " (--" + e.Name + ") needs a value"
		}
	}
	out := r.refuse(e.At, msg, hint)
	out.Getopt = e.Error()
	return out
}

// takeEmpty are the options of which sbatch takes an empty value as none: what a script with an unset variable writes.
var takeEmpty = strings.Fields("account array bb chdir cluster-constraint comment constraint container dependency error exclude export " +
	"extra-node-info " +
	"gpus gpus-per-node gpus-per-rank gpus-per-socket gpus-per-task input job-name licenses mail-user mcs-label nice nodelist output power " +
	"priority propagate qos reservation wckey")

// TakesEmpty reports whether an option of sbatch, srun and salloc, by its main name, is not given where its value is empty.
func TakesEmpty(long string) bool { return slices.Contains(takeEmpty, long) }

func nearestName(name string) string {
	var names []string
	for i := range Options {
		if Options[i].List != Refused {
			names = append(names, Options[i].Spellings()...)
		}
	}
	return nearest.Of(name, names)
}
