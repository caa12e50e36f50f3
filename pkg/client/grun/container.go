package grun

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"gangd/pkg/client/program"
	"gangd/pkg/core/container"
	"gangd/pkg/core/script"
)

// containers are the rows of pyxis' options. Inside an allocation they are the step's, outside the job's around it.
func containers() (rows []Option) {
	for i := range script.ContainerOptions {
		o := &script.ContainerOptions[i]
		row := Option{Long: o.Long, Arg: o.Arg, Group: groupBox, Help: o.Help, Env: []string{o.Env()}, Alloc: true}
		if o.Arg != "" {
			row.Kind = value
		}
		switch {
		case o.Steps != nil:
			row.Alloc, row.Set = false, func(a *ask, v string) error { return setTruth(&a.remapRoot, v, *o.Steps) }
		case o.Refused != "":
			row.Alloc, row.Help = false, ""
			row.Group, row.List, row.Note, row.Use = groupNot, refusedList, o.Refused, o.Use
		case o.Pointless != "":
			row.Alloc, row.Help = false, ""
			row.Group, row.List, row.Note = groupHints, partial, "accepted without effect: "+o.Pointless
		default:
			row.Set = func(a *ask, v string) error { return o.Set(&a.box, v) }
		}
		rows = append(rows, row)
	}
	return rows
}

// setTruth sets what an option without a value says, whose variable may also say no.
func setTruth(into *bool, v string, is bool) error {
	if v != "" {
		yes, err := strconv.ParseBool(v)
		if err != nil {
			return errors.New("want 1 or 0")
		}
		is = is == yes
	}
	*into = is
	return nil
}

// ofTheJob: a variable that named the container of the job around is no wish for another one in it.
func ofTheJob(g given) bool {
	return g.env != "" && g.o.Group == groupBox && os.Getenv(container.EnvName) != ""
}

func (r *run) contain(dir string) error {
	option := ""
	if r.box.Name == "" {
		option = script.CheckContainer(&r.box)
	}
	if option == "" && r.remapRoot && r.box.Image == "" && r.box.Name == "" && !r.jobsBox && os.Getenv(container.EnvName) == "" {
		option = "container-remap-root"
	}
	if option != "" {
		return program.Usagef("--%s: %s; %s", option, script.NoContainer, script.NoContainerUse)
	}
	if r.box.Image != "" || r.box.Name != "" {
		box := r.box
		r.ask.step.Container, r.ask.step.Dir = &box, filepath.Clean(dir)
	}
	return nil
}
