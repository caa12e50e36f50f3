package script

import (
	"slices"
	"strings"
	"time"

	"gangd/pkg/api"
)

// Request is what the settings ask for: the part of a submission that words decide, and
// what gsubmit itself shall do. The caller adds script, arguments, environment, directory
// and key.
type Request struct {
	Spec  api.Spec
	Array *api.Array

	Chdir  string // --chdir as written
	Export string // --export as written, empty: ALL
	Wrap   string // --wrap
	// ExportFile is --export-file; User and UserGroup are --uid and --gid, as written.
	ExportFile, User, UserGroup string
	Key                         string // --key
	// Timeout is --timeout, 0 for off; nil: not given.
	Timeout *time.Duration

	Wait, Follow, Parsable, TestOnly, Quiet, Verbose, NoProgress bool
	Help, HelpSlurm, Usage, Version                              bool

	Used []Setting // the settings that decided, in table order
}

// By is the setting that decided an option, nil when nobody set it.
func (r *Request) By(long string) *Setting {
	for i := range r.Used {
		if r.Used[i].Option.Long == long {
			return &r.Used[i]
		}
	}
	return nil
}

// Refuse makes the error of an option with the place where it was set, for a check that
// only the caller can make.
func (r *Request) Refuse(long, msg, hint string) error {
	if s := r.By(long); s != nil {
		return s.refuse(s.String()+": "+msg, hint)
	}
	return &Error{Msg: msg, Hint: hint}
}

// rivals are options that say one thing in two ways. Set in one source they contradict
// each other; otherwise the closer source's stays and the other is dropped.
var rivals = [][2]string{
	{"size", "ntasks"}, {"size", "ntasks-per-node"}, {"ranks-per-node", "ntasks-per-node"},
	{"gpus-per-rank", "gpus-per-node"}, {"gpus-per-rank", "gpus"}, {"gpus-per-rank", "gres"},
	{"gpus-per-node", "gpus"}, {"gpus-per-node", "gres"}, {"gpus", "gres"},
	{"mem", "mem-per-cpu"}, {"mem", "mem-per-gpu"}, {"mem", "mem-per-rank"},
	{"mem-per-cpu", "mem-per-gpu"}, {"mem-per-cpu", "mem-per-rank"}, {"mem-per-gpu", "mem-per-rank"},
	clashingCPUs,
	{"requeue", "no-requeue"}, {"no-requeue", "max-retries"}, {"no-requeue", "backoff-limit"}, {"no-requeue", "stall-retries"},
	{"exclusive", "share"},
	{"test-only", "wait"}, {"test-only", "follow"}, {"array", "follow"},
}

var clashingCPUs = [2]string{"cpus-per-task", "cpus-per-gpu"}

func countsCards(s *Setting) bool { return slices.Contains(cardWords, s.Option.Long) }

// Build decides between the settings and derives the figures that they imply. now is what
// --begin is relative to.
func Build(settings []Setting, now time.Time) (*Request, []Warning, error) {
	settings, err := expand(settings)
	if err != nil {
		return nil, nil, err
	}
	warn, err := checkEach(settings, now)
	if err != nil {
		return nil, nil, err
	}
	var a *Ask
	var w []Warning
	if n := components(settings); n > 1 {
		a, w, err = heterogeneous(settings, n, now)
	} else {
		a, w, err = build(settings, now)
	}
	if err != nil {
		return nil, nil, err
	}
	return &a.Request, append(warn, w...), nil
}

// build makes of settings that are right each by itself what they ask for together.
func build(settings []Setting, now time.Time) (*Ask, []Warning, error) {
	won := decide(settings)
	if err := contradictions(won); err != nil {
		return nil, nil, err
	}
	if err := byRole(won); err != nil {
		return nil, nil, err
	}
	a := &Ask{now: now}
	for i := range Options {
		for _, s := range all(settings, won[&Options[i]]) {
			a.Used, a.setting = append(a.Used, *s), s
			if s.Option.Set != nil {
				_ = s.Option.Set(a, s.Value) // checked above
			}
		}
	}
	warn, err := a.derive()
	a.Spec.Words = a.asWords()
	return a, warn, err
}

// asWords are the settings that size, resources and nodes were asked for with.
func (a *Ask) asWords() []string {
	out := []string{} // none is known, too
	for i := range a.Used {
		if s := &a.Used[i]; IsResource(s.Option.Long) {
			out = append(out, s.word())
		}
	}
	return out
}

// word is a setting as a word of a command line.
func (s *Setting) word() string {
	if !s.Given && s.Option.Kind != Value {
		return "--" + s.Option.Long
	}
	return "--" + s.Option.Long + "=" + s.Value
}

// resources are the options that say how large a job is, what it needs and which nodes it may have.
var resources = strings.Fields("size ranks-per-node nodes ntasks ntasks-per-node gpus-per-rank gpus-per-node gpus gres vram min-compute " +
	"share cpu-bind hint threads-per-core " +
	"cpus-per-task cpus-per-gpu mem tmp mem-per-cpu mem-per-gpu mem-per-rank exclusive nodelist exclude switches ntasks-per-core " +
	"extra-node-info gpus-per-socket sockets-per-node " +
	"cores-per-socket ntasks-per-socket mincpus ntasks-per-gpu overcommit distribution gpu-bind gpu-freq cpu-freq mem-bind acctg-freq " +
	"profile launch nodefile")

// IsResource reports whether an option, by its main name, is one of them.
func IsResource(long string) bool {
	return slices.Contains(resources, long) || slices.ContainsFunc(api.PoolRows, func(r api.PoolRow) bool { return r.Option == long })
}

// checkEach tries every setting by itself, overridden ones too: a typo that only shows
// when a flag is left out some day is a trap.
func checkEach(settings []Setting, now time.Time) ([]Warning, error) {
	var warn []Warning
	warned := map[*Option]bool{}
	for i := range settings {
		s := &settings[i]
		o := s.Option
		if s.Unset {
			continue
		}
		if o.List == Refused {
			e := s.refuse(s.String()+": "+o.Note, o.Use)
			e.Bad = s
			return nil, e
		}
		if o.Set != nil {
			a := &Ask{now: now}
			err := o.Set(a, s.Value)
			for _, text := range a.warned {
				warn = append(warn, Warning{s.Pos, s.String() + ": " + text})
			}
			if err != nil {
				v, _ := err.(*valueError)
				e := s.refuse(s.String()+": "+v.msg, v.hint)
				e.Bad = s
				return nil, e
			}
		}
		if o.Warn && !warned[o] && (o.Heeded == nil || !o.Heeded(s.Value)) {
			warned[o] = true
			warn = append(warn, Warning{s.Pos, "--" + s.Name + " has no effect: " + o.Note})
		}
	}
	return warn, nil
}

// Valid checks every setting by itself, as [Build] does, before there is a script.
func Valid(settings []Setting, now time.Time) error {
	_, err := checkEach(settings, now)
	return err
}

// decide keeps of each option the last setting of the closest source.
func decide(settings []Setting) map[*Option]*Setting {
	won := make(map[*Option]*Setting, len(settings))
	for i := range settings {
		s := &settings[i]
		if have := won[s.Option]; have == nil || s.Source >= have.Source {
			won[s.Option] = s
		}
	}
	for o, s := range won {
		if s.Unset {
			delete(won, o)
		}
	}
	return won
}

// all is the settings that a winner stands for: itself, or every one of its source where the
// option may be repeated.
func all(settings []Setting, won *Setting) []*Setting {
	switch {
	case won == nil:
		return nil
	case !won.Option.Repeat:
		return []*Setting{won}
	}
	var out []*Setting
	for i := range settings {
		if s := &settings[i]; s.Option == won.Option && s.Source == won.Source && !s.Unset {
			out = append(out, s)
		}
	}
	return out
}

// contradictions refuses rivals of one source and drops the weaker of two.
func contradictions(won map[*Option]*Setting) error {
	for _, pair := range rivals {
		a, b := won[named(pair[0])], won[named(pair[1])]
		switch {
		case a == nil || b == nil || agree(won, a, b):
		case a.Source == b.Source && countsCards(a) && countsCards(b): // see Ask.reconcile
		case a.Source == b.Source:
			if later(a, b) {
				a, b = b, a
			}
			e := b.refuse(b.String()+" contradicts "+a.where(), "keep one of them")
			if pair == clashingCPUs {
				e.Clash = ClashCPUs
			}
			return e
		case a.Source < b.Source:
			delete(won, a.Option)
		default:
			delete(won, b.Option)
		}
	}
	return nil
}

// agree tells the pairs of rivals that say the same: cards by rank and by node on a gang
// whose ranks a node are known, as scripts for sbatch write them.
func agree(won map[*Option]*Setting, a, b *Setting) bool {
	if a.Option.Long == "gres" || b.Option.Long == "gres" { // gmem:40G beside --gpus=2 sizes those cards
		var x Ask
		_, _ = a.Option.Set(&x, a.Value), b.Option.Set(&x, b.Value)
		if x.gres.sizeOnly {
			return true
		}
	}
	if a.Option.Long != "gpus-per-rank" || b.Option.Long != "gpus-per-node" && b.Option.Long != "gres" {
		return false
	}
	per := won[named("ntasks-per-node")]
	if per == nil {
		per = won[named("ranks-per-node")]
	}
	if per == nil {
		return false
	}
	var x Ask
	_, _, _ = a.Option.Set(&x, a.Value), b.Option.Set(&x, b.Value), per.Option.Set(&x, per.Value)
	ranks := max(x.perNode, x.Spec.RanksPerNode)
	return x.Spec.GPUsPerRank*ranks == x.Spec.GPUsPerNode+x.gres.gpus
}

// later orders two settings of one source as a person reads them.
func later(a, b *Setting) bool {
	if a.Pos.Line != b.Pos.Line {
		return a.Pos.Line > b.Pos.Line
	}
	return a.Pos.Col > b.Pos.Col
}

// named finds a row by its main name. A name that is not in the table is a mistake in
// this package, caught by the first test that runs.
func named(long string) *Option {
	for i := range Options {
		if Options[i].Long == long {
			return &Options[i]
		}
	}
	panic("script: no option " + long)
}
