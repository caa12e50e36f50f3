package stacks

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"gangd/pkg/api"
)

// Frame is a function and the file that it is in, in the form in which stacks of ranks can be compared: without
// directories, addresses, arguments, line numbers, and what is unlike by chance in generated names.
func Frame(function, file string) string {
	function = nameOf(function)
	if i := strings.LastIndexByte(file, '/'); i >= 0 {
		file = file[i+1:]
	}
	if file = plain(file); file != "" {
		function += " (" + generated.ReplaceAllString(file, "#") + ")"
	}
	return cut(function, api.MaxStackFrame)
}

// generated are the parts of a name that a program makes up as it goes: digests, addresses, process ids.
var generated = regexp.MustCompile(`0x[0-9a-fA-F]+|[0-9a-f]{12,}|[0-9]{4,}`)

// clone is what compilers put behind the name of a part of a function, version what linkers put behind a symbol.
var clone = regexp.MustCompile(`(\.(constprop|isra|part|cold|lto_priv|llvm)(\.[0-9]+)*)+$|@@?[A-Z][A-Za-z0-9_.]*$|\+0x[0-9a-f]+$`)

// nameOf takes what is not the name off a function as debuggers write it.
func nameOf(f string) string {
	f = clone.ReplaceAllString(strings.TrimSpace(plain(f)), "")
	f = withoutPairs(f, '(', ')')
	f = withoutPairs(f, '<', '>')
	f = strings.TrimSuffix(strings.TrimSpace(f), " const")
	f = generated.ReplaceAllString(f, "#")
	if f == "" {
		return "?"
	}
	return f
}

// withoutPairs takes out what brackets enclose: arguments of a function, or of a template. A name that is nothing else, as
// Python's <module>, stays, and so does one whose brackets do not match.
func withoutPairs(f string, open, shut byte) string {
	if f == "" || f[0] == open || strings.Contains(f, "operator") {
		return f
	}
	var out strings.Builder
	depth := 0
	for i := 0; i < len(f); i++ {
		switch {
		case f[i] == open:
			depth++
		case f[i] == shut && depth > 0:
			depth--
		case f[i] == shut:
			return f
		case depth == 0:
			out.WriteByte(f[i])
		}
	}
	if depth > 0 || out.Len() == 0 {
		return f
	}
	return out.String()
}

// plain is a text of a process without what a terminal would take for a command.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == utf8.RuneError || r == '\u2028' || r == '\u2029' {
			return '?'
		}
		return r
	}, s)
}

// cut shortens a text to so many bytes, between characters.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}

// short is a text of a process, harmless and of so many bytes at most.
func short(s string, most int) string { return cut(plain(cut(s, most)), most) }

// keptOutermost is how many of the calls that are kept of a long stack are the outermost ones.
const keptOutermost = api.MaxStackFrames / 4

// Bounded bounds a stack, or what is known of each call of one: the innermost calls say where it is, the outermost ones what for.
func Bounded[T any](all []T) []T {
	if len(all) <= api.MaxStackFrames {
		return all
	}
	out := append([]T{}, all[:api.MaxStackFrames-keptOutermost]...)
	return append(out, all[len(all)-keptOutermost:]...)
}

// Call is one of a stack, as what reads a process knows it.
type Call struct {
	Frame string
	Line  int // 0: not known
	// Values are those of variables that may tell ranks apart ([Tells]).
	Values []api.StackValue
}

// ThreadOf is a stack, innermost first, as it is compared. calls nil: it could not be read.
func ThreadOf(does api.ThreadStack, calls []Call) api.ThreadStack {
	if calls == nil {
		return does
	}
	calls = Bounded(calls)
	does.Frames, does.Lines, does.Values = make([]string, len(calls)), make([]int, len(calls)), nil
	for i := range calls {
		does.Frames[i], does.Lines[i] = calls[i].Frame, calls[i].Line
		for _, v := range calls[i].Values {
			if v.Frame = i; len(does.Values) < api.MaxStackValues && v.Value > -mostValue && v.Value < mostValue {
				does.Values = append(does.Values, v)
			}
		}
	}
	return does
}

// mostValue bounds a value: JSON carries no larger one whole.
const mostValue = 1 << 53

// Tells says of a variable whether its value is the same in all ranks that wait for each other. The tag of a message is; a
// rank's own number, its peer, and what a loop counts are not, by their nature or by chance.
func Tells(name string) bool {
	switch name {
	case "tag", "sendtag", "recvtag": // the last two are MPI's
		return true
	}
	return strings.HasSuffix(name, "_tag")
}
