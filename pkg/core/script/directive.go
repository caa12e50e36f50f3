package script

import (
	"bytes"
	"strconv"
	"strings"

	"gangd/pkg/api"
)

// magics are the beginnings of a directive. They stand in column 1, as sbatch wants them:
// "##SBATCH" and "# SBATCH" are how people switch one off.
var magics = []struct {
	text   string
	source Source
}{
	{"#GANG", FromGANG},
	{"#SBATCH", FromSBATCH},
}

// maxLateWarnings bounds the warnings about directives behind the first command: a script
// that writes other scripts by here-documents may hold hundreds.
const maxLateWarnings = 3

// Directives reads the #GANG and #SBATCH lines up to the first command. Those behind it
// are not read, and are named in warnings.
func Directives(file string, text []byte) ([]Setting, []Warning, error) {
	var out []Setting
	var warn []Warning
	command := 0 // line of the first command, 0: not met yet
	late, component := 0, 0
	for n := 1; len(text) > 0; n++ {
		raw, rest, _ := bytes.Cut(text, []byte{'\n'})
		text = rest
		line := strings.TrimSuffix(string(raw), "\r")
		body, source, is := directive(line)
		switch {
		case is && command > 0:
			late++
			if late <= maxLateWarnings {
				warn = append(warn, Warning{Pos{File: file, Line: n}, "not read: the directive stands behind the first command (line " +
					strconv.Itoa(command) + "); move it above"})
			}
		case is:
			r := reader{source: source, file: file, line: n, component: component}
			if err := r.directive(body, len(line)-len(body)+1); err != nil {
				return nil, nil, err
			}
			if component = r.component; component >= api.MaxRoles {
				return nil, nil, r.refuse(0, "more than "+strconv.Itoa(api.MaxRoles)+" components", "join some of them")
			}
			out = append(out, r.out...)
		case command == 0:
			trimmed := strings.TrimLeft(line, " \t")
			switch {
			case trimmed == "":
			case trimmed[0] != '#':
				command = n
			case trimmed != line:
				if _, _, is := directive(trimmed); is {
					warn = append(warn, Warning{Pos{File: file, Line: n}, "not read: a directive begins in column 1; remove the blanks before it, or " +
						"write ## to switch it off"})
				}
			}
		}
	}
	if late > maxLateWarnings {
		warn = append(warn, Warning{Pos{File: file}, strconv.Itoa(late-maxLateWarnings) +
			" more directives behind the first command are not read"})
	}
	return out, warn, nil
}

// directive cuts the magic word off.
func directive(line string) (body string, source Source, is bool) {
	for _, m := range magics {
		rest, ok := strings.CutPrefix(line, m.text)
		// What is glued to #SBATCH is a slip that sbatch refuses.
		if ok && (m.source == FromSBATCH || rest == "" || rest[0] == ' ' || rest[0] == '\t' || rest[0] == '-') {
			return rest, m.source, true
		}
	}
	return "", 0, false
}

// directive reads the options of one line.
func (r *reader) directive(body string, col int) error {
	words, cols, badCol := splitWords(body, col)
	if badCol > 0 {
		r.cols = []int{badCol}
		return r.refuse(0, "the quote is never closed", "close it on the same line")
	}
	r.cols = cols
	rest, err := r.read(words)
	if err != nil {
		return err
	}
	for i := range r.out {
		if err := checkLiteral(&r.out[i]); err != nil {
			return err
		}
	}
	if len(rest) == 0 {
		return nil
	}
	at, word := len(words)-len(rest), rest[0]
	if word == "hetjob" || word == "packjob" {
		r.component++
		return nil
	}
	if r.source == FromSBATCH && strings.Trim(word, `"'`) == "" { // quotes with nothing in them, which sbatch passes over
		return nil
	}
	e := r.refuse(at, "unexpected word "+strconv.Quote(word), "options begin with - or --, a comment with #, and blanks in a value need "+
		"quotes")
	e.Stray = word
	return e
}

// checkLiteral refuses $VAR and ~ in a directive. No shell reads these lines, sbatch takes
// them literally, and since missing directories are made a job would write into one named
// "$HOME".
func checkLiteral(s *Setting) error {
	switch s.Option.Long {
	case "output", "error", "input", "chdir":
	default:
		return nil
	}
	if strings.HasPrefix(s.Value, "~") || strings.HasPrefix(s.Value, "$") || strings.Contains(s.Value, "/$") {
		return s.refuse(s.String()+": variables and ~ are not expanded in a directive",
			"write the path out, or give it on the command line: gsubmit --"+s.Name+"=\""+s.Value+"\" "+s.Pos.File)
	}
	return nil
}
