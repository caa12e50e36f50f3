package submit

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/client/program"
	"gangd/pkg/core/nearest"
	"gangd/pkg/core/script"
)

// scriptText gives the name and text of what is submitted: --wrap, a file, or standard
// input.
func scriptText(flags []script.Setting, rest []string) (name string, text []byte, err error) {
	for _, f := range flags {
		if f.Option.Long != "wrap" || f.Value == "" {
			continue
		}
		if len(rest) > 0 {
			return "", nil, program.Usagef("--wrap is the whole command, and %q follows it; put everything into the quotes: --wrap='COMMAND ARG'",
				rest[0])
		}
		text, name = script.Wrap(f.Value), "wrap"
	}
	switch {
	case text != nil:
	case len(rest) > 0 && rest[0] != "-":
		name = rest[0]
		text, err = readFile(name)
	default:
		name = "stdin"
		text, err = readStdin(os.Stdin)
	}
	if err != nil {
		return "", nil, err
	}
	if strings.IndexByte(name, '\n') >= 0 {
		return "", nil, program.Usagef("the script's name %q holds a newline; rename it", name)
	}
	return name, text, script.Check(name, text)
}

// Find is where a script is, as sbatch finds it: as named, and else a bare name on the PATH.
func Find(name string) (path string, ok bool) {
	if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		return name, true
	}
	if !strings.Contains(name, "/") {
		path = onPath(name)
	}
	return path, path != ""
}

// readFile reads a script.
func readFile(name string) ([]byte, error) {
	path, ok := Find(name)
	if !ok {
		path = name
	}
	f, err := os.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: no such file; %s", name, nearScripts(name))
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("%s: you can't read it; ask its owner for: chmod +r %s", name, name)
	case err != nil:
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s: this is a directory; name the script in it", name)
	}
	return readLimited(f)
}

// readLimited reads one byte more than is accepted, which script.Check then refuses.
func readLimited(f *os.File) ([]byte, error) {
	return io.ReadAll(io.LimitReader(f, api.MaxScriptBytes+1))
}

// readStdin refuses a terminal: a person who forgot the script's name would wait for ever.
func readStdin(f *os.File) ([]byte, error) {
	if _, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS); err == nil {
		return nil, program.Usagef("no script given; name one, gsubmit job.sh, or give a command: gsubmit --wrap='COMMAND'")
	}
	return readLimited(f)
}

// onPath finds a readable file of that name on the PATH, whether executable or not.
func onPath(name string) string {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		p := filepath.Join(dir, name)
		if info, err := os.Stat(p); err == nil && info.Mode().IsRegular() && unix.Access(p, unix.R_OK) == nil {
			return p
		}
	}
	return ""
}

// nearScripts names a file of the same directory that the person may have meant.
func nearScripts(name string) string {
	dir := filepath.Dir(name)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "there is no directory " + dir
	}
	var files []string
	for _, e := range entries {
		if !e.IsDir() {
			files = append(files, e.Name())
		}
	}
	if n := nearest.Of(filepath.Base(name), files); n != "" {
		return "did you mean " + filepath.Join(dir, n) + "?"
	}
	return "check the name: ls " + dir
}
