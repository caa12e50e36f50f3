package script

import (
	"bytes"
	"strconv"
	"strings"

	"gangd/pkg/api"
)

// Check refuses what can't run as a script: nothing is queued that would only fail on a
// node later.
func Check(file string, text []byte) error {
	at := func(line int, msg, hint string) error {
		return &Error{Pos: Pos{File: file, Line: line}, Msg: msg, Hint: hint}
	}
	switch {
	case len(text) == 0:
		return at(0, "the script is empty", "its first line must be an interpreter, for instance #!/bin/bash")
	case len(text) > api.MaxScriptBytes:
		return at(0, "the script is larger than "+formatSize(api.MaxScriptBytes), "keep data in files and have the script read them")
	case bytes.HasPrefix(text, []byte("\x7fELF")):
		return at(0, "this is a program, not a script", "run it from one: gsubmit --wrap='"+file+"'")
	case bytes.HasPrefix(text, []byte("\xff\xfe")), bytes.HasPrefix(text, []byte("\xfe\xff")):
		return at(1, "the script is UTF-16", "convert it: iconv -f UTF-16 -t UTF-8 "+file)
	case bytes.HasPrefix(text, []byte("\xef\xbb\xbf")):
		return at(1, "a byte order mark stands before #!", "remove it: sed -i '1s/^\\xef\\xbb\\xbf//' "+file)
	}
	if i := bytes.IndexByte(text, 0); i >= 0 {
		return at(lineOf(text, i), "the script holds a NUL byte", "it is not a text file; check what wrote it")
	}
	if i := bytes.Index(text, []byte("\r\n")); i >= 0 {
		return at(lineOf(text, i), "the line ends in CR LF, as DOS and Windows write it", "convert the script: sed -i 's/\\r$//' "+file)
	}
	if !bytes.HasPrefix(text, []byte("#!")) {
		return at(1, "this is not a script: it does not begin with #!", "make the first line an interpreter, for instance #!/bin/bash")
	}
	first, _, _ := bytes.Cut(text, []byte{'\n'})
	if len(bytes.TrimSpace(first[2:])) == 0 {
		return at(1, "#! names no interpreter", "for instance #!/bin/bash")
	}
	return nil
}

// lineOf is the number of the line that holds byte i.
func lineOf(text []byte, i int) int { return 1 + bytes.Count(text[:i], []byte{'\n'}) }

const wrapHead = "#!/bin/sh\n# Made by gsubmit --wrap.\n\n"

// Wrapped is what a job that --wrap made was given, as it would be given again: --wrap='COMMAND', the name wrap where the script is
// another one.
func Wrapped(text []byte) string {
	command, ok := strings.CutPrefix(string(text), wrapHead)
	if !ok {
		return "wrap"
	}
	return "--wrap='" + strings.ReplaceAll(strings.TrimSuffix(command, "\n"), "'", `'\''`) + "'"
}

// Wrap makes the script of --wrap.
func Wrap(command string) []byte {
	return []byte(wrapHead + command + "\n")
}

// oneLine shows a value in a message: short, and nothing in it that breaks the line or
// reaches the terminal as a command.
func oneLine(s string) string {
	if len(s) > 80 {
		s = s[:80] + "..."
	}
	q := strconv.Quote(s)
	if q[1:len(q)-1] == strings.NewReplacer(`"`, `\"`, `\`, `\\`).Replace(s) {
		return s
	}
	return q[1 : len(q)-1]
}
