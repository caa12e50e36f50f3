package script

import "strings"

// Traps tells whether the text of a shell script sets a trap for a signal, named without SIG,
// as far as text can tell: what it reads from other files is not seen.
func Traps(text, signal string) bool {
	if !strings.Contains(text, "trap") {
		return false
	}
	text = withoutComments(text)
	for at := 0; ; {
		i := strings.Index(text[at:], "trap")
		if i < 0 {
			return false
		}
		before, rest := text[:at+i], text[at+i+len("trap"):]
		at += i + len("trap")
		if before != "" && !strings.ContainsAny(before[len(before)-1:], " \t\n;&|({") {
			continue
		}
		action, rest := shellWord(strings.TrimPrefix(strings.TrimLeft(rest, " \t"), "-- "))
		if action == "" || action == "-" || action == "-p" || action == "-l" {
			continue // no handler: the signal is ignored, or what it is by default
		}
		for {
			var name string
			if name, rest = shellWord(rest); name == "" {
				break
			}
			if n, err := ParseSignalName(name); err == nil && n == signal {
				return true
			}
		}
	}
}

// withoutComments leaves out the lines that are nothing else.
func withoutComments(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(strings.TrimLeft(line, " \t"), "#") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// shellWord takes the next word of a line of shell, without its quotes.
func shellWord(s string) (word, rest string) {
	s = strings.TrimLeft(s, " \t")
	var b strings.Builder
	quote := byte(0)
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quote == 0 && strings.IndexByte(" \t\r\n;&|)#", c) >= 0:
			return b.String(), s[i:]
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case quote != 0 && c == quote:
			quote = 0
		case c == '\\' && quote != '\'' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), ""
}
