package proc

import (
	"os"
	"path"
	"slices"
	"strings"
)

// mount is one line of /proc/self/mountinfo.
type mount struct {
	root, point string
	fs          string
	options     []string // of the superblock: for v1 the controllers
	readOnly    bool
}

func mounts() ([]mount, error) {
	b, err := readAll("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	return parseMounts(string(b)), nil
}

// NotMounted gives those of some paths where nothing is mounted, by this process's mounts or, where a
// path is given, by a file of the form of /proc/self/mountinfo. It touches none of them: a file
// system that hangs holds up nobody.
func NotMounted(points []string, mountinfo string) ([]string, error) {
	if mountinfo == "" {
		mountinfo = "/proc/self/mountinfo"
	}
	b, err := os.ReadFile(mountinfo)
	if err != nil {
		return nil, err
	}
	all := parseMounts(string(b))
	return slices.DeleteFunc(slices.Clone(points), func(p string) bool {
		return slices.ContainsFunc(all, func(m mount) bool { return m.point == path.Clean(p) })
	}), nil
}

// parseMounts reads "id parent dev root point options tags... - fs source superoptions".
func parseMounts(text string) []mount {
	var out []mount
	for line := range strings.Lines(text) {
		head, tail, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " - ")
		h, t := strings.Fields(head), strings.Fields(tail)
		if !ok || len(h) < 6 || len(t) < 3 {
			continue
		}
		out = append(out, mount{root: unescape(h[3]), point: unescape(h[4]), fs: t[0],
			options:  strings.Split(t[2], ","),
			readOnly: slices.Contains(strings.Split(h[5], ","), "ro")})
	}
	return out
}

// unescape undoes the octal escapes of blanks and backslashes.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

func (m mount) has(controller string) bool { return slices.Contains(m.options, controller) }

// path is where a group, named as in /proc/PID/cgroup, lies below this mount.
func (m mount) path(name string) string {
	if rest, ok := strings.CutPrefix(name, m.root); ok && m.root != "/" {
		name = rest
	}
	return path.Join(m.point, name)
}
