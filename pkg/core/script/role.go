package script

import (
	"strconv"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/core/nearest"
)

// askedRole is one --role as it was written; what it leaves open is the job's.
type askedRole struct {
	name       string
	count      int
	cpus       int // 0: open
	mem        *int64
	gpus       *int
	kind       string
	vram       int64
	constraint string
	ends       bool
	by         *Setting // where it was written
}

const roleForm = "write --role=worker:3, or --role=worker:3,gpus-per-rank=1,vram=40G,cpus=4,mem=8G"

// setRole takes one role, or several with blanks between: a variable of the environment
// occurs only once.
func setRole(a *Ask, v string) error {
	words := strings.Fields(v)
	if len(words) == 0 {
		return bad("the value is empty", roleForm)
	}
	for _, w := range words {
		r, err := parseRole(w)
		if err != nil {
			return err
		}
		r.by = a.setting
		a.roles = append(a.roles, r)
	}
	return nil
}

// parseRole reads name:count[,option=value...].
func parseRole(s string) (askedRole, error) {
	head, rest, more := strings.Cut(s, ",")
	name, count, ok := strings.Cut(head, ":")
	r := askedRole{name: name}
	switch {
	case !api.RoleNameOK(name):
		return r, bad(strconv.Quote(name)+" is not a name for a role", "write lower-case letters, digits and -, a letter first, at most "+
			strconv.Itoa(api.MaxRoleName)+": worker, data-loader")
	case !ok:
		return r, bad("how many ranks role "+name+" has is missing", "write "+name+":1")
	}
	var err error
	if r.count, err = number(count, 1, api.MaxGangSize); err != nil {
		v := err.(*valueError)
		return r, bad("the ranks of role "+name+": "+v.msg, v.hint)
	}
	if !more {
		return r, nil
	}
	for _, kv := range strings.Split(rest, ",") {
		if err := r.option(kv); err != nil {
			return r, err
		}
	}
	return r, nil
}

// roleOptions are what a role may have of its own.
var roleOptions = []struct {
	name    string
	aliases []string
	set     func(r *askedRole, v string) error
}{
	{"gpus-per-rank", []string{"gpus", "gpus-per-task"}, func(r *askedRole, v string) error {
		var n int
		err := gpusInto(&n, &r.kind, v)
		r.gpus = &n
		return err
	}},
	{"vram", nil, func(r *askedRole, v string) (err error) {
		r.vram, err = parseVRAM(v)
		return err
	}},
	{"cpus", []string{"cpus-per-rank", "cpus-per-task"}, func(r *askedRole, v string) error { return numberInto(&r.cpus, v, 1, 1<<20) }},
	{"mem", []string{"mem-per-rank"}, func(r *askedRole, v string) error {
		r.mem = new(int64)
		return sizeInto(r.mem, v)
	}},
	{"constraint", nil, func(r *askedRole, v string) error {
		var a Ask
		err := setConstraint(&a, v)
		r.constraint = a.Spec.Constraint
		return err
	}},
	{"ends", nil, func(r *askedRole, v string) error {
		if v != "gang" {
			return bad("unknown value", "write ends=gang: when all ranks of the role are done the gang is done, and the others are stopped")
		}
		r.ends = true
		return nil
	}},
}

func (r *askedRole) option(kv string) error {
	name, value, ok := strings.Cut(kv, "=")
	var names []string
	for _, o := range roleOptions {
		names = append(names, o.name)
		for _, n := range append(o.aliases, o.name) {
			if n != name {
				continue
			}
			if !ok {
				return bad(name+" of role "+r.name+" needs a value", roleForm)
			}
			if err := o.set(r, value); err != nil {
				v := err.(*valueError)
				return bad(kv+" of role "+r.name+": "+v.msg, v.hint)
			}
			return nil
		}
	}
	hint := "a role has " + strings.Join(names, ", ")
	if n := nearest.Of(name, names); n != "" {
		hint = "did you mean " + n + "? " + hint
	}
	return bad("unknown option "+strconv.Quote(name)+" of role "+r.name, hint)
}

// rankCounts are the options that count ranks or figures in other ways than by role.
var rankCounts = []string{"nodes", "ntasks", "ntasks-per-node", "ranks-per-node", "gpus", "gpus-per-node", "gres", "mem"}

// byRole drops what a closer --role replaces, and refuses what can't stand beside it: a
// figure for each node says nothing where each rank may sit on another kind of node.
func byRole(won map[*Option]*Setting) error {
	role := won[named("role")]
	if role == nil {
		return nil
	}
	for _, name := range rankCounts {
		s := won[named(name)]
		if s == nil {
			continue
		}
		if s.Source < role.Source {
			delete(won, s.Option)
			continue
		}
		hint := "roles count ranks; leave it out"
		switch name {
		case "gpus", "gpus-per-node", "gres":
			hint = "write --gpus-per-rank, or gpus-per-rank in the role"
		case "mem":
			hint = "write --mem-per-rank, or mem in the role"
		}
		return s.refuse(s.String()+" does not go with "+role.where(), hint)
	}
	return nil
}

// deriveRoles makes the gang of its roles: each is derived as if it were a job of its own
// with what the job asks for in place of what it left open.
func (a *Ask) deriveRoles() error {
	total := 0
	for i := range a.roles {
		r := &a.roles[i]
		total += r.count
		for j := range a.roles[:i] {
			if a.roles[j].name == r.name {
				return r.by.refuse(r.by.String()+": role "+r.name+" is named twice", "give each role one --role with all its ranks")
			}
		}
	}
	last := a.roles[len(a.roles)-1].by
	switch size := a.By("size"); {
	case len(a.roles) > api.MaxRoles:
		return last.refuse(api.Count(len(a.roles), "role")+" asked for, at most "+strconv.Itoa(api.MaxRoles)+" are accepted", "join some of them")
	case total > api.MaxGangSize:
		return last.refuse("the roles come to "+strconv.Itoa(total)+" ranks, at most "+strconv.Itoa(api.MaxGangSize)+" are accepted",
			"ask for fewer")
	case size != nil && size.Source >= last.Source && a.size != total:
		return size.refuse(size.String()+": the roles come to "+api.Count(total, "rank"), "leave --size out, or make them agree")
	case a.Spec.Launch == api.LaunchBatch:
		return a.Refuse("launch", "the ranks of roles run the script each", "leave --launch out")
	}
	share := false
	for i := range a.roles {
		role, err := a.deriveRole(&a.roles[i])
		if err != nil {
			return err
		}
		share = share || a.Spec.Share && role.VRAMBytes > 0
		a.Spec.Roles = append(a.Spec.Roles, role)
	}
	if a.Spec.Share && !share {
		return a.Refuse("share", "needs --vram, or there is nothing to tell whether gangs fit on a card together", "write --share --vram=SIZE")
	}
	s := &a.Spec
	s.Size, s.Launch, s.CPUsPerRank = total, api.LaunchRanks, max(1, s.CPUsPerRank)
	if s.VRAMBytes > 0 && s.GPUsPerRank == 0 && !a.asksNoCards() {
		s.GPUsPerRank = 1
	}
	return nil
}

func (a *Ask) deriveRole(r *askedRole) (api.Role, error) {
	one := *a
	s := &one.Spec
	s.Size, s.RanksPerNode = r.count, 0
	if r.cpus > 0 {
		s.CPUsPerRank, one.cpusPerGPU = r.cpus, 0
	}
	if r.gpus != nil {
		s.GPUsPerRank, s.GPUType = *r.gpus, r.kind
	}
	if r.vram > 0 {
		s.VRAMBytes = r.vram
	}
	if r.gpus != nil && *r.gpus == 0 {
		if r.vram > 0 {
			return api.Role{}, r.by.refuse(r.by.String()+": role "+r.name+" asks for VRAM on no card", "leave one of them out")
		}
		s.VRAMBytes, s.GPUType = 0, ""
	}
	if s.VRAMBytes > 0 && s.GPUsPerRank == 0 && (r.vram > 0 || !a.asksNoCards()) {
		s.GPUsPerRank = 1
	}
	if s.GPUsPerRank == 0 {
		// What is for each card is nothing for a rank without any.
		one.cpusPerGPU, one.memGPU, s.GPUType, s.VRAMBytes = 0, 0, "", 0
	}
	s.Share = false // it is a matter of the whole gang
	if r.mem != nil {
		s.MemoryPerRank, one.memCPU, one.memGPU = *r.mem, 0, 0
	}
	for _, step := range []func() error{one.cards, one.cpus, one.memory} {
		if err := step(); err != nil {
			return api.Role{}, err
		}
	}
	role := api.Role{Name: r.name, Count: r.count, CPUsPerRank: s.CPUsPerRank, MemoryPerRank: s.MemoryPerRank, GPUsPerRank: s.GPUsPerRank,
		GPUType: s.GPUType, VRAMBytes: s.VRAMBytes, Constraint: s.Constraint, EndsGang: r.ends}
	if r.constraint != "" {
		role.Constraint = r.constraint
	}
	return role, nil
}
