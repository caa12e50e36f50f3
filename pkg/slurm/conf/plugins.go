package conf

import (
	"path"
	"strings"
)

// Two files belong to plug-ins of Slurm: job_container.conf, and plugstack.conf, where pyxis stands.

// ReadPlugins reads a plugstack.conf: of each line the first word is the key, the rest the value. What it
// includes is named and not read, since names are patterns there.
func ReadPlugins(open func(path string) (string, error), name string) ([]Line, error) {
	text, err := open(name)
	if err != nil {
		return nil, err
	}
	var lines []Line
	for n, raw := range strings.Split(text, "\n") {
		word, rest, _ := strings.Cut(strings.TrimSpace(uncomment(strings.ReplaceAll(strings.TrimSuffix(raw, "\r"), "\t", " "))), " ")
		if word != "" {
			lines = append(lines, Line{File: name, N: n + 1, Items: []Item{{word, strings.TrimSpace(rest)}}})
		}
	}
	return lines, nil
}

// pluginLine reads a line of plugstack.conf.
func (s *site) pluginLine(l Line) {
	item := l.Items[0]
	file, _, _ := strings.Cut(item.Value, " ")
	switch {
	case item.Value == "" || !item.is("required") && !item.is("optional") && !item.is("include"):
		s.errs = append(s.errs, l.at("want required, optional or include and a path, not %q", strings.TrimSpace(item.Key+" "+item.Value)))
	case item.is("include"):
		s.say(item, None, "it is not read; name its files with --plugstack")
	case strings.HasSuffix(strings.TrimSuffix(path.Base(file), ".so"), "pyxis"):
		s.node["containers"] = "true"
		s.say(item, Different, says("containers", "true", "--container-image takes images that lie unpacked on the nodes; those of registries "+
			"and packed ones need container_driver"))
	default:
		s.say(item, None, noPlugin)
	}
}

// containerKeys is every key of job_container.conf of Slurm 22.05 and the releases after it.
var containerKeys = []string{"AutoBasePath", "BasePath", "Dirs", "EntireStepInNS", "InitScript", "NodeName", "Shared", "CloneNSScript",
	"CloneNSEpilog",
	"CloneNSScript_Wait", "CloneNSEpilog_Wait"}

// containerLine reads a line of job_container.conf: directories that each job has for itself.
func (s *site) containerLine(l Line) {
	const where = "of the size private_size or --tmp, and /dev/shm in memory; they are gone with the job"
	base, dirs := "", "/tmp,/dev/shm"
	for _, i := range l.Items {
		switch {
		case i.is("BasePath"):
			base, _, _ = strings.Cut(i.Value, " ")
		case i.is("Dirs"):
			dirs = i.Value
		}
	}
	on := base != "" && !strings.EqualFold(base, "none")
	var list []string
	for _, d := range strings.Split(dirs, ",") {
		if d = strings.TrimSpace(d); !strings.HasPrefix(d, "/") || d != path.Clean(d) {
			s.errs = append(s.errs, l.at("Dirs=%s: want absolute paths, with commas", dirs))
			return
		}
		list = append(list, quote(d))
	}
	if on {
		s.node["private_dirs"] = "[" + strings.Join(list, ", ") + "]"
		if path.IsAbs(base) && !strings.ContainsAny(base, "%") {
			s.node["private_path"] = quote(base)
		}
	}
	for _, i := range l.Items {
		switch {
		case i.is("BasePath") && on && s.node["private_path"] != "":
			s.say(i, Different, says("private_path", s.node["private_path"], where))
		case i.is("BasePath") && on:
			s.say(i, None, "they lie in memory: write private_path without patterns to have them on a disk")
		case i.is("Dirs") && on:
			s.say(i, Different, says("private_dirs", s.node["private_dirs"], where))
		case i.is("BasePath"), i.is("Dirs"):
			s.say(i, None, "directories are shared where private_dirs names none")
		case i.is("AutoBasePath"), i.is("Shared"):
			s.say(i, None, "nothing with a name is made below the path, which has to be there")
		case i.is("InitScript"), i.is("CloneNSScript"), i.is("CloneNSEpilog"), i.is("CloneNSScript_Wait"), i.is("CloneNSEpilog_Wait"):
			s.say(i, None, "prolog and epilog run around each attempt, outside of its directories; task_prolog runs inside")
		case i.is("EntireStepInNS"):
			s.say(i, Taken, "")
		case i.is("NodeName"):
			s.hosts(i)
			s.say(i, Different, "gnoded.toml of the other nodes has it as well: take private_dirs out there")
		default:
			s.unknown(i, containerKeys)
		}
	}
}
