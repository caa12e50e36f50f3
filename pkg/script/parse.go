package script

import (
	"slices"
	"strings"

	"gangd/pkg/nearest"
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
	words := make([]word, len(args))
	for i, a := range args {
		words[i].text = a
	}
	p := parser{source: FromFlag, words: words, slurm: slurm}
	if err := p.run(); err != nil {
		return nil, nil, err
	}
	return p.out, args[p.next:], nil
}

// parser reads options from words, the same way for a directive and a command line.
type parser struct {
	source Source
	file   string
	line   int
	words  []word
	next   int // first word not taken
	out    []Setting
	slurm  bool // abbreviations are of sbatch's names alone
}

// run takes words until one is no option.
func (p *parser) run() error {
	for p.next < len(p.words) {
		w := p.words[p.next]
		if len(w.text) < 2 || w.text[0] != '-' {
			return nil
		}
		p.next++
		var err error
		switch {
		case w.text == "--":
			return nil
		case w.text[1] == '-':
			err = p.long(w)
		default:
			err = p.short(w)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) pos(w word) Pos { return Pos{File: p.file, Line: p.line, Col: w.col} }

func (p *parser) refuse(w word, msg, hint string) error {
	return &Error{Pos: p.pos(w), Msg: msg, Hint: hint, Usage: p.source == FromFlag}
}

// getopt is refuse with the C library's words beside ours.
func (p *parser) getopt(w word, words, msg, hint string) error {
	return &Error{Pos: p.pos(w), Msg: msg, Hint: hint, Usage: p.source == FromFlag, Getopt: words}
}

// long reads --name, --name=value, --name value.
func (p *parser) long(w word) error {
	name, value, given := strings.Cut(w.text[2:], "=")
	o, full, err := lookup(name, p.slurm || p.source == FromSBATCH)
	if err != nil {
		words := "unrecognized option '" + w.text + "'"
		if fits, ok := strings.CutPrefix(err.hint, "it may be --"); ok {
			words = "option '" + w.text + "' is ambiguous; possibilities: '--" + strings.ReplaceAll(fits, ", --", "' '--") + "'"
		}
		return p.getopt(w, words, err.msg, err.hint)
	}
	if given && o.Kind == NoValue {
		return p.getopt(w, "option '--"+full+"' doesn't allow an argument", "--"+full+" takes no value", "write --"+full)
	}
	if !given && o.Kind == Value {
		if value, given = p.take(); !given {
			return p.getopt(w, "option '--"+full+"' requires an argument", "--"+full+" needs a value", "write --"+full+"="+o.Arg)
		}
	}
	return p.add(o, full, value, given, w)
}

// short reads -N2, -N 2, -N=2, and switches in one word: -HQ.
func (p *parser) short(w word) error {
	for i := 1; i < len(w.text); i++ {
		o := byShort(w.text[i])
		if o == nil {
			return p.getopt(w, "invalid option -- '"+w.text[i:i+1]+"'", "unknown option -"+string(rune(w.text[i])), "gsubmit --help lists the options")
		}
		glued := strings.TrimPrefix(w.text[i+1:], "=")
		switch {
		case o.Kind == NoValue:
			if err := p.add(o, o.Long, "", false, w); err != nil {
				return err
			}
			continue
		case i+1 < len(w.text):
			return p.add(o, o.Long, glued, true, w)
		case o.Kind == MayValue:
			return p.add(o, o.Long, "", false, w)
		}
		value, ok := p.take()
		if !ok {
			return p.getopt(w, "option requires an argument -- '"+string(rune(o.Short))+"'", "-"+string(rune(o.Short))+" (--"+o.Long+") needs a value", "write --"+o.Long+"="+o.Arg)
		}
		return p.add(o, o.Long, value, true, w)
	}
	return nil
}

// take is the next word as a value.
func (p *parser) take() (string, bool) {
	if p.next == len(p.words) {
		return "", false
	}
	p.next++
	return p.words[p.next-1].text, true
}

func (p *parser) add(o *Option, name, value string, given bool, w word) error {
	if o.OnLine && p.source != FromFlag {
		return p.refuse(w, "--"+name+" belongs on the command line", "remove it here")
	}
	p.out = append(p.out, Setting{Option: o, Name: name, Value: value, Given: given, Source: p.source, Pos: p.pos(w)})
	return nil
}

func byShort(c byte) *Option {
	for i := range Options {
		if Options[i].Short == c {
			return &Options[i]
		}
	}
	return nil
}

// lookup finds an option by its long name or, as getopt allows, by a beginning that only
// one option has; of sbatch's names alone (none of which speaks of ranks) in what was written
// for sbatch.
func lookup(name string, slurm bool) (*Option, string, *valueError) {
	var found *Option
	var full string
	var fits []string
	for i := range Options {
		o := &Options[i]
		for _, n := range o.Names() {
			if n == name {
				return o, n, nil
			}
			if name != "" && strings.HasPrefix(n, name) && (!slurm || o.List != Own && !strings.Contains(n, "rank")) {
				fits = append(fits, n)
				if found == nil {
					found, full = o, n
				} else if found != o {
					full = ""
				}
			}
		}
	}
	switch {
	case found != nil && full != "":
		return found, full, nil
	case found != nil:
		slices.Sort(fits)
		return nil, "", &valueError{"ambiguous option --" + name, "it may be --" + strings.Join(fits, ", --")}
	}
	hint := "gsubmit --help lists the options"
	if n := nearestName(name); n != "" {
		hint = "did you mean --" + n + "?"
	}
	return nil, "", &valueError{"unknown option --" + name, hint}
}

func nearestName(name string) string {
	var names []string
	for i := range Options {
		if Options[i].List != Refused {
			names = append(names, Options[i].Names()...)
		}
	}
	return nearest.Of(name, names)
}
