package grun

import (
	"fmt"
	"os"
	"slices"
	"strconv"

	"gangd/pkg/api"
	"gangd/pkg/client/program"
	"gangd/pkg/client/stepclient"
	"gangd/pkg/core/rankenv"
	"gangd/pkg/core/script"
	"gangd/pkg/wire/stepwire"
)

// component is one of several parts of a call, with options and a program of its own:
// "srun -n1 server : -n4 client". Outside of a job each is a component of a heterogeneous job that
// is made for them. Inside one it runs on the nodes of its component, and inside any other job on
// nodes that no other component of the step has.
type component struct {
	*ask
	args []string
}

// all are the components, the first of them too.
func (r *run) all() []component { return append([]component{{r.ask, r.args}}, r.more...) }

func (r *run) read(args []string) error {
	var before []given
	for i := 0; ; i++ {
		if i >= api.MaxRoles {
			return program.Usagef("more than %d components", api.MaxRoles)
		}
		cmd, rest, err := parse(args)
		if err != nil {
			return r.misused(err)
		}
		kept := slices.DeleteFunc(before, func(g given) bool {
			return !script.Inherited(g.o.Long) || slices.ContainsFunc(cmd, func(own given) bool { return own.o == g.o })
		})
		cmd = append(kept, cmd...)
		before = slices.Clone(cmd)
		a, err := take(r.name, i, cmd)
		if err != nil {
			return r.badValue(err)
		}
		if len(a.groups) == 1 && a.groups[0] != i { // variables of that component, then
			if a, err = take(r.name, a.groups[0], cmd); err != nil {
				return r.badValue(err)
			}
		}
		words, next, several := r.cut(rest)
		if i == 0 {
			r.ask, r.args, r.given = a, words, cmd
		} else {
			r.more = append(r.more, component{a, words})
		}
		if args = next; !several {
			break
		}
	}
	if size, _ := strconv.Atoi(os.Getenv("SLURM_HET_SIZE")); size == 0 && len(r.more) > 0 {
		for _, c := range r.all() {
			if !c.nodesCmd { // variables speak of the whole allocation
				c.step.MinNodes, c.step.MaxNodes = 0, 0
			}
			if inJob() && c.step.MinNodes == 0 && c.step.Tasks == 0 && c.step.TasksPerNode == 0 && len(c.step.NodeList) == 0 {
				c.step.MinNodes, c.step.MaxNodes = 1, 1 // else the first had all that the job has
			}
		}
	}
	// A component without a program runs that of the next one.
	for i := len(r.more) - 1; i >= 0; i-- {
		before := &r.args
		if i > 0 {
			before = &r.more[i-1].args
		}
		if len(*before) == 0 {
			*before = r.more[i].args
		}
	}
	if n := len(r.more); n > 0 && r.name != "salloc" && len(r.more[n-1].args) == 0 {
		r.args = nil
	}
	return nil
}

// cut divides what stands behind the options of a component from the next component. The
// command of salloc may have any argument; that of srun none that is ":" alone, as in Slurm.
func (r *run) cut(rest []string) (words, next []string, several bool) {
	at := slices.Index(rest, script.Separator)
	if at < 0 || r.name == "salloc" && at > 0 {
		return rest, nil, false
	}
	return rest[:at], rest[at+1:], true
}

// lookup is a variable of the environment as it is for a component of a heterogeneous job: what is said of
// the components one by one is not meant for another.
func lookup(name string, component int) (string, bool) {
	size, _ := strconv.Atoi(os.Getenv("SLURM_HET_SIZE"))
	of := func(i int) (string, bool) { return os.LookupEnv(name + "_HET_GROUP_" + strconv.Itoa(i)) }
	for i := range min(size, api.MaxRoles) {
		if _, ok := of(i); ok {
			return of(component)
		}
	}
	return os.LookupEnv(name)
}

// group settles on which components of the job around the components of the step run.
func (r *run) group() error {
	size, _ := strconv.Atoi(os.Getenv("SLURM_HET_SIZE"))
	refuse := func(format string, args ...any) error {
		return &program.ExitError{Status: 1, Err: fmt.Errorf("error: "+format, args...)}
	}
	all := r.all()
	switch {
	case size == 0 && len(r.groups) == 0:
		return nil
	case len(all) > size && size > 0:
		return refuse("Attempt to run a job step with het group value of %d, but the job allocation has maximum value of %d", len(all)-1, size-1)
	case len(all) == 1 && len(r.groups) > 1:
		if g := slices.Max(r.groups); g >= max(size, 1) {
			return refuse("Attempt to run a job step with het group value of %d, but the job allocation has maximum value of %d", g, max(size, 1)-1)
		}
		if err := r.spread(); err != nil {
			return err
		}
		all = r.all()
	}
	for i := range all {
		a := all[i].ask
		g := i
		if len(a.groups) > 1 {
			return refuse("component %d: one component of a step runs on one of the job: --het-group=N", i)
		} else if len(a.groups) == 1 {
			g = a.groups[0]
		}
		if g >= max(size, 1) {
			return refuse("Requested het-group offset exceeds highest hetjob index (%d > %d)", g, max(size, 1)-1)
		}
		a.step.Group = &g
	}
	return nil
}

// spread makes of one program for several components of the job a component for each.
func (r *run) spread() error {
	cmd := slices.Clone(r.given)
	for i, g := range r.groups {
		a, err := take(r.name, g, cmd)
		if err != nil {
			return r.badValue(err)
		}
		if a.groups = []int{g}; i == 0 {
			r.ask = a
		} else {
			r.more = append(r.more, component{a, r.args})
		}
	}
	return nil
}

// components adds what the further components of a step run, where, and with which environment.
func (r *run) components(o *stepclient.Options, mask int) error {
	if len(r.more) > 0 && r.multi {
		return program.Usagef("--multi-prog: components have a program each; leave one of them out")
	}
	for i := range r.more {
		m := &run{ask: r.more[i].ask, name: r.name, args: r.more[i].args, err: r.err, told: r.told}
		switch {
		case m.multi:
			return program.Usagef("--multi-prog: components have a program each; leave one of them out")
		case m.input != r.input:
			return program.Usagef("--input=%s: the components of a step have one input; write it for the first", m.input)
		}
		if err := m.defaults(); err != nil {
			return err
		}
		c := stepclient.Component{Body: o.Body, CPUsPerTask: m.ask.step.CPUsPerTask}
		var err error
		if c.Body.Env, err = m.environ(); err != nil {
			return err
		}
		if m.chdir != r.chdir {
			if c.Body.Dir, err = m.dir(); err != nil {
				return err
			}
		}
		c.Body.Programs, c.Body.PerTask, c.Body.Client.Extra = []stepwire.Program{{Argv: m.args}}, m.perTask(), m.extraEnv(mask)
		c.Body.CardsOf = m.cardsOf
		o.Ask.More, o.More = append(o.Ask.More, m.ask.step.StepComponent), append(o.More, c)
	}
	return nil
}

// perTask is how many cards each task sees for itself, 0: all of the step's on its node.
func (r *run) perTask() int {
	switch {
	case r.bindCards > 0:
		return r.bindCards
	case r.perTaskCards && !r.noBind:
		return r.ask.step.GPUsPerTask
	}
	return 0
}

// words are what the job around a step is submitted with.
func (r *run) words() []string {
	all := r.all()
	out := []string{"--no-requeue", "--output=/dev/null"}
	if len(all) == 1 {
		out = append(out, "--launch=batch")
	}
	for i, c := range all {
		if i > 0 {
			out = append(out, script.Separator)
		}
		out = append(out, c.alloc...)
		if c.oneTask() && r.name != "salloc" { // whose command is told what was asked for, no more
			out = append(out, "--ntasks=1")
		}
	}
	return out
}

// heterogeneous is what the command of salloc, and tasks that srun starts outside of a job, are told of
// the components; nothing where there is one.
func (a *allocation) heterogeneous() []string {
	j := a.job
	var all []rankenv.Component
	for i := range j.Components {
		part := j.Part(i)
		c := rankenv.Component{JobID: part.ComponentID, Partition: part.Partition, Nodes: part.Nodes,
			Spec: &api.Spec{Name: part.Name, Size: part.Size, CPUsPerRank: part.CPUsPerRank, RanksPerNode: part.RanksPerNode,
				GPUsPerRank: part.GPUsPerRank,
				GPUsPerNode: part.GPUsPerNode, MemoryPerNode: part.MemoryPerNode, Asked: part.Asked}}
		c.Tasks, c.CPUs = onNodes(&part)
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil
	}
	return rankenv.Heterogeneous(a.id, j.Account, all)
}
