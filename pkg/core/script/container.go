package script

import (
	"strconv"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/core/container"
)

// ContainerOption is an option that speaks of a container, for all commands that take it. Each may be said
// by a variable of pyxis, too: PYXIS_CONTAINER_IMAGE.
type ContainerOption struct {
	Long      string
	Arg       string // empty: it takes no value
	Help      string
	Refused   string // why it can't be done; Use is what can
	Use       string
	Pointless string // why it changes nothing
	// Steps take it all the same, those of srun and grun; true and false is what it says.
	Steps *bool
	Set   func(c *api.Container, v string) error
}

// Env is the variable of pyxis that says the same.
func (o *ContainerOption) Env() string {
	return "PYXIS_" + strings.ToUpper(strings.ReplaceAll(o.Long, "-", "_"))
}

// ContainerOptions are those of pyxis.
var ContainerOptions = []ContainerOption{
	{Long: "container-image", Arg: "IMAGE",
		Help: "run in an image: HOST/NAME:TAG of a registry, FILE.sqsh, FILE.sif, docker-archive:FILE, or the directory of an unpacked one",
		Set:  setContainerImage},
	{Long: "container-mounts", Arg: "SRC:DST[:ro],...", Help: "show directories and files of the node in the container",
		Set: setContainerMounts},
	{Long: "container-workdir", Arg: "DIR", Help: "directory in the container to start in (the working directory, which is mounted)",
		Set: func(c *api.Container, v string) error { return absoluteInto(&c.WorkDir, v) }},
	{Long: "container-mount-home", Help: "show the home directory in the container",
		Set: truth(func(c *api.Container, on bool) { c.Home = on })},
	{Long: "no-container-mount-home", Help: "do not, which is the default", Set: truth(func(c *api.Container, on bool) { c.Home = !on })},
	{Long: "container-env", Arg: "NAME[,NAME...]", Help: "variables that keep the value of the job where the image has one of its own",
		Set: setContainerEnv},
	{Long: "container-readonly", Help: "nothing can be written in the container but what is mounted",
		Set: truth(func(c *api.Container, on bool) { c.ReadOnly = on })},
	{Long: "container-writable", Help: "what is written in the container is kept in memory and gone with it, which is the default",
		Set: truth(func(c *api.Container, on bool) { c.ReadOnly = !on })},
	{Long: "no-container-remap-root", Help: "do not, which is the default", Pointless: "no script is root in a container", Steps: new(false)},
	{Long: "no-container-entrypoint", Pointless: "the program is what runs in the container"},
	{Long: "container-name", Arg: "NAME[:create|:exec]", Help: "what the container is called, for steps that join it until the job ends",
		Set: setContainerName},
	{Long: "container-save", Arg: "FILE", Refused: "containers are not saved", Use: "make the image before, and use --container-image"},
	{Long: "container-remap-root", Help: "each task is root in a user namespace, with no more rights than its user",
		Refused: "no script is root in a container", Use: "give it to srun, for its steps", Steps: new(true)},
	{Long: "container-entrypoint", Refused: "the program is what runs in the container", Use: "call the entrypoint in it"},
	{Long: "container-entrypoint-log", Refused: "the program is what runs in the container", Use: "call the entrypoint in it"},
}

// containers are their rows.
func containers() (rows []Option) {
	for i := range ContainerOptions {
		o := &ContainerOptions[i]
		row := Option{Long: o.Long, Arg: o.Arg, Env: []string{o.Env()}, Group: groupFiles, Help: o.Help}
		if o.Arg != "" {
			row.Kind = Value
		}
		switch {
		case o.Refused != "":
			row.Group, row.Help = groupNot, o.Refused+"; "+o.Use
			row.Set = func(_ *Ask, v string) error {
				if no, err := strconv.ParseBool(v); o.Arg == "" && v != "" && err == nil && !no {
					return nil
				}
				return bad(o.Refused, o.Use)
			}
		case o.Pointless != "":
			row.Group, row.Help = groupHints, o.Pointless
			row.Set = func(*Ask, string) error { return nil }
		default:
			row.Set = func(a *Ask, v string) error { return o.Set(&a.container, v) }
		}
		rows = append(rows, row)
	}
	return rows
}

// truth sets what an option without a value says, whose variable may also say no.
func truth(set func(c *api.Container, on bool)) func(*api.Container, string) error {
	return func(c *api.Container, v string) error {
		on, err := true, error(nil)
		if v != "" {
			if on, err = strconv.ParseBool(v); err != nil {
				return bad("want 1 or 0", "")
			}
		}
		set(c, on)
		return nil
	}
}

// CheckContainer says which option speaks of a container where none is asked for; empty: none does.
func CheckContainer(c *api.Container) (option string) {
	switch {
	case c.Image != "":
	case c.Name != "":
		return "container-name"
	case c.WorkDir != "":
		return "container-workdir"
	case len(c.Mounts) > 0:
		return "container-mounts"
	case c.Home:
		return "container-mount-home"
	case len(c.Env) > 0:
		return "container-env"
	case c.ReadOnly:
		return "container-readonly"
	}
	return ""
}

// What a person is told of such an option.
const (
	NoContainer    = "speaks of a container, and none is asked for"
	NoContainerUse = "name one: --container-image=IMAGE"
)

// setContainerImage takes the name of an image, and writes it in the one way that nodes know.
func setContainerImage(c *api.Container, v string) error {
	image, err := container.Parse(v)
	if err != nil {
		return bad(err.Error(), "write --container-image=nvcr.io/nvidia/pytorch:24.01-py3, or the path of an unpacked image")
	}
	return textInto(&c.Image, image.String())
}

// setContainerName reads pyxis' NAME[:FLAG]. A container has no namespace but that of its mounts: who joins it has its files, as
// with no_exec.
func setContainerName(c *api.Container, v string) error {
	name, use, _ := strings.Cut(v, ":")
	if !container.IsName(name) {
		return bad("want a name of letters, digits and . _ -, at most 64", "write --container-name=trainer")
	}
	switch use {
	case "", "auto", "no_exec":
		use = api.UseAny
	case api.UseNew, api.UseThere:
	default:
		return bad("the flag "+use+" is not known: want auto, create, exec or no_exec", "write --container-name="+name+":exec")
	}
	c.Name, c.Use = name, use
	return nil
}

func setContainerEnv(c *api.Container, v string) error {
	for name := range strings.SplitSeq(v, ",") {
		if name == "" || strings.ContainsAny(name, "= \t") {
			return bad("want names of variables with commas", "write --container-env=PYTHONPATH,HF_HOME")
		}
		c.Env = append(c.Env, name)
	}
	return nil
}

// setContainerMounts reads pyxis' list: SRC:DST[:FLAGS], where flags are ro, rw, and those that say nothing here.
func setContainerMounts(c *api.Container, v string) error {
	for item := range strings.SplitSeq(v, ",") {
		f := strings.Split(item, ":")
		m := api.ContainerMount{Source: f[0], Target: f[0]}
		if len(f) > 1 {
			m.Target = f[1]
		}
		if len(f) > 3 || !absolute(m.Source) || !absolute(m.Target) {
			return bad("want SRC:DST[:ro] with absolute paths", "write --container-mounts=/data:/data:ro")
		}
		if len(f) == 3 {
			for flag := range strings.SplitSeq(f[2], "+") {
				switch flag {
				case "ro":
					m.ReadOnly = true
				case "rw", "rbind", "bind", "private", "rprivate", "slave", "rslave":
				default:
					return bad("the flag "+flag+" is not known: want ro or rw", "")
				}
			}
		}
		c.Mounts = append(c.Mounts, m)
	}
	return nil
}

func absolute(path string) bool { return strings.HasPrefix(path, "/") }

func absoluteInto(into *string, v string) error {
	if !absolute(v) {
		return bad("want an absolute path", "")
	}
	if len(v) > 1 {
		v = strings.TrimRight(v, "/")
	}
	return textInto(into, v)
}
