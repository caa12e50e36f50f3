package submit

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"gangd/pkg/client/program"
	"gangd/pkg/core/script"
)

// readText reads a file that an option names.
func readText(name string) (string, error) {
	text, err := os.ReadFile(name)
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err // the option names the file
	}
	return string(text), err
}

// environFile is the environment that --export-file holds: a file, or the number of a descriptor that is open here. What belongs to
// the place where the file was made is left out, as in Slurm.
func (s *submission) environFile(name string) ([]string, error) {
	var text string
	var err error
	if fd, bad := strconv.Atoi(name); bad == nil && fd > 2 && open(fd) {
		f := os.NewFile(uintptr(fd), name)
		var all []byte
		all, err = io.ReadAll(f)
		f.Close()
		text = string(all)
	} else {
		text, err = readText(name)
	}
	if err != nil {
		return nil, s.bad("export-file", err.Error(), "")
	}
	if text != "" && strings.IndexByte(text, 0) < 0 {
		s.warn("--export-file: %s holds no NUL, so all of it is one variable; env -0 writes a NUL behind each", name)
	}
	var env []string
	for entry := range strings.SplitSeq(text, "\x00") {
		switch name, _, ok := strings.Cut(entry, "="); {
		case !ok || name == "" || name == "DISPLAY" || name == "ENVIRONMENT" || name == "HOSTNAME":
		default:
			env = append(env, entry)
		}
	}
	return env, nil
}

func open(fd int) bool {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	return err == nil
}

// become is whom the job is submitted as. It comes last: files are read as who calls.
func (s *submission) become() error {
	err := program.Become(s.req.User, s.req.UserGroup)
	option := program.OfBecome(err, s.req.User)
	switch {
	case errors.Is(err, program.ErrNotRoot):
		return s.bad(option, err.Error(), "run it as that user: sudo -u USER "+s.program)
	case err != nil:
		return s.bad(option, err.Error(), "")
	}
	return nil
}

// bad refuses the value of an option, for a reason that only shows here.
func (s *submission) bad(option, why, hint string) error {
	err := s.req.Refuse(option, why, hint)
	var e *script.Error
	if errors.As(err, &e) {
		e.Bad = s.req.By(option)
	}
	return err
}
