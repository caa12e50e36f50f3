package noded

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/node/proc"
	"gangd/pkg/node/shim"
	"gangd/pkg/node/sitehook"
)

// The site's prolog runs before anything of a member does, and its epilog when nothing of it is
// left and before what it has is given on. That it is over is told first. What the epilog has to undo is written down before the prolog
// begins: the record goes with an epilog that succeeded, so that a daemon that died in between is made good
// by the next one, which runs the hook again. A program that the daemon before left running is ended first.

// Hooks are the site's programs around each member: a file, or a directory of them; empty: none.
type Hooks struct {
	Prolog, Epilog         string
	TaskProlog, TaskEpilog string        // around each rank and task, as the job's user
	Timeout                time.Duration // of each program
}

// programs are those of a hook that a key of the configuration names.
func programs(key, path string) ([]string, error) {
	if path == "" {
		return nil, nil
	}
	found, err := sitehook.Programs(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return found, nil
}

// check says at start what could not be run later.
func (h *Hooks) check() error {
	_, err := programs("prolog", h.Prolog)
	if err == nil {
		_, err = programs("epilog", h.Epilog)
	}
	if err == nil {
		_, err = h.around()
	}
	return err
}

// around gives the programs around each task; nil: there are none. What can't be run any more is said.
func (h *Hooks) around() (*sitehook.Task, error) {
	prolog, err := programs("task_prolog", h.TaskProlog)
	if err != nil {
		return nil, err
	}
	epilog, err := programs("task_epilog", h.TaskEpilog)
	if err != nil || len(prolog)+len(epilog) == 0 {
		return nil, err
	}
	return &sitehook.Task{Timeout: h.Timeout, Prolog: prolog, Epilog: epilog}, nil
}

const (
	hooksDir = "hooks"
	// hookName begins the name of what holds a hook's processes: it is no member's.
	hookName   = "hook."
	hookMarker = "GANG_HOOK_MARK"
)

// epilogAgain is between two runs of an epilog that fails; a variable for tests.
var epilogAgain = 10 * time.Second

// owed are the epilogs that have to run, by member.
type owed struct {
	mu     sync.Mutex
	record map[api.MemberKey]*hookRecord
	failed map[api.MemberKey]string // that ran and failed
	early  sync.WaitGroup           // those that a daemon before owed, of members that are gone
}

// hookRecord is what an epilog is run with, and what came of the prolog.
type hookRecord struct {
	api.MemberKey
	Env []string      `json:"env"`
	Ran []api.HookRun `json:"ran,omitempty"`
}

func hookFile(k api.MemberKey) string { return filepath.Join(hooksDir, keyName(k)) }

// openHooks reads what a daemon before owed, and ends what it left running.
func (d *daemon) openHooks() error {
	if err := d.opts.Hooks.check(); err != nil {
		return err
	}
	d.endHooks()
	dir := filepath.Join(d.state.path, hooksDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		k, ok := keyOf(e.Name())
		if !ok {
			continue // of a write that was cut short: its prolog had not begun
		}
		r := &hookRecord{MemberKey: k}
		if _, err := d.state.readRecord(hookFile(k), r); err != nil || r.MemberKey != k {
			d.log.Error("record of a hook is not whole: its epilog runs without the job's words", "job", k.Job, "epoch", k.Epoch, "err", err)
			r = &hookRecord{MemberKey: k, Env: []string{"GANG_NODE=" + d.opts.Name, "GANG_JOB_ID=" + strconv.FormatInt(k.Job, 10), "SLURM_JOB_ID=" +
				strconv.FormatInt(k.Job, 10)}}
		}
		d.owed.record[k] = r
	}
	return nil
}

// endHooks ends what is left of the hooks of a daemon before.
func (d *daemon) endHooks() {
	var left []proc.Place
	if d.cgroups.Kind == proc.Group {
		pids, _ := proc.All()
		for _, pid := range pids {
			if v := proc.Variable(pid, hookMarker); strings.HasPrefix(v, d.state.id+".") {
				left = append(left, proc.Place{Kind: proc.Group, Marker: hookMarker + "=" + v})
			}
		}
	} else {
		entries, _ := os.ReadDir(d.cgroups.Dir)
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), d.state.id+"-"+hookName) {
				left = append(left, d.cgroups.Place(e.Name(), ""))
			}
		}
	}
	for _, p := range left {
		if err := proc.KillContainment(p, killFor); err != nil {
			d.log.Warn("a hook of the daemon before is not ended", "err", err)
		}
	}
}

// epilogDue is what the epilog of a member has to run with; nil: it has not to, or has failed in this daemon.
func (d *daemon) epilogDue(k api.MemberKey) *hookRecord {
	d.owed.mu.Lock()
	defer d.owed.mu.Unlock()
	if d.owed.failed[k] != "" {
		return nil
	}
	return d.owed.record[k]
}

// payDebts runs the epilogs of members of which only the record is left.
func (d *daemon) payDebts(ctx context.Context) {
	d.owed.mu.Lock()
	keys := slices.Collect(maps.Keys(d.owed.record))
	d.owed.mu.Unlock()
	for _, k := range keys {
		if d.find(k) != nil {
			continue // it does so at its end
		}
		d.owed.early.Add(1)
		d.running.Go(func() {
			_, _ = d.epilog(ctx, k) // its member is known to be gone
			d.owed.early.Done()
		})
	}
}

// prolog runs the site's prolog for a member that is being prepared. ok is false when the daemon ends.
func (m *member) prolog(ctx context.Context, s *shim.Spec, body *api.AssignmentBody) (refusal *api.Refusal, ok bool) {
	d, h := m.d, &m.d.now().Hooks
	if h.Prolog == "" && h.Epilog == "" {
		return nil, true
	}
	d.owed.early.Wait() // what they undo must not be what this makes
	for d.cleansUp(m) && ctx.Err() == nil {
		sleep(ctx, retryWait)
	}
	r := &hookRecord{MemberKey: m.key, Env: d.hookEnv(s, body)}
	if err := d.state.writeRecord(hookFile(m.key), r); err != nil {
		return nodeFault("prolog: %v", err), true
	}
	d.owed.mu.Lock()
	d.owed.record[m.key] = r
	delete(d.owed.failed, m.key)
	d.owed.mu.Unlock()
	err := d.hook(ctx, "prolog", h.Prolog, r)
	switch {
	case ctx.Err() != nil:
		return nil, false
	case err != nil:
		return nodeFault("prolog: %v", err), true
	case len(r.Ran) > 0: // for a daemon to come; without it the text alone is lost
		if err := d.state.writeRecord(hookFile(m.key), r); err != nil {
			d.log.Warn("what a hook wrote is not kept", "err", err)
		}
	}
	return nil, true
}

// epilog runs the site's epilog for a member of which nothing is left. Where it fails the node takes
// nothing new, and it is tried again until it succeeds. ran is what came of it and of the prolog. It is
// false when the daemon ends.
func (d *daemon) epilog(ctx context.Context, k api.MemberKey) (ran []api.HookRun, ok bool) {
	r := d.epilogDue(k)
	if r == nil {
		return nil, true
	}
	err := d.hook(ctx, "epilog", d.now().Hooks.Epilog, r)
	if ctx.Err() != nil {
		return nil, false
	}
	ran = slices.Clone(r.Ran)
	if d.settle(k, err); err != nil {
		d.running.Go(func() {
			for err != nil && ctx.Err() == nil {
				if sleep(ctx, epilogAgain); ctx.Err() != nil {
					return
				}
				if err = d.hook(ctx, "epilog", d.now().Hooks.Epilog, r); ctx.Err() == nil {
					d.settle(k, err)
				}
			}
		})
	}
	return ran, true
}

// cleansUp says whether the epilog of another epoch of the job runs: what it undoes must not be what this one's prolog makes.
func (d *daemon) cleansUp(m *member) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.jobs[m.key.Job], func(o *member) bool { return o != m && o.cleaning.Load() })
}

func (d *daemon) settle(k api.MemberKey, err error) {
	d.owed.mu.Lock()
	if err == nil {
		if err := os.Remove(filepath.Join(d.state.path, hookFile(k))); err != nil {
			d.log.Warn("record of a hook not removed: its epilog will run again", "job", k.Job, "epoch", k.Epoch, "err", err)
		}
		delete(d.owed.record, k)
		delete(d.owed.failed, k)
	} else {
		d.owed.failed[k] = fmt.Sprintf("epilog of job %d: %v", k.Job, err)
	}
	text := strings.Join(slices.Sorted(maps.Values(d.owed.failed)), "; ")
	d.owed.mu.Unlock()
	d.fitness.say(d, func(f *fitness) { f.epilog = text })
}

// hookEnv is what hooks are told of a member. What a user chooses freely is not in it.
func (d *daemon) hookEnv(s *shim.Spec, body *api.AssignmentBody) []string {
	job, uid, gid := strconv.FormatInt(s.Job, 10), strconv.FormatUint(uint64(s.UID), 10), strconv.FormatUint(uint64(s.GID), 10)
	names := make([]string, len(body.Nodes))
	for i, p := range body.Nodes {
		names[i] = p.Name
	}
	nodes, cards := strings.Join(names, ","), strings.Join(s.CardUUIDs(), ",")
	out := []string{"GANG_NODE=" + d.opts.Name, "GANG_JOB_ID=" + job, "GANG_EPOCH=" + strconv.Itoa(s.Epoch), "GANG_USER=" + s.User,
		"GANG_UID=" + uid,
		"GANG_GID=" + gid, "GANG_HOME=" + s.Home, "GANG_PARTITION=" + body.Partition, "GANG_NODELIST=" + nodes, "GANG_CARDS=" + cards,
		"GANG_CPUS=" + s.CPUSet().String(),
		"SLURM_JOB_ID=" + job, "SLURM_JOBID=" + job, "SLURM_JOB_USER=" + s.User, "SLURM_JOB_UID=" + uid, "SLURM_UID=" + uid, "SLURM_JOB_GID=" +
			gid, "SLURM_RESTART_COUNT=" + strconv.Itoa(body.RestartCount),
		"SLURM_JOB_PARTITION=" + body.Partition, "SLURMD_NODENAME=" + d.opts.Name, "SLURM_JOB_NODELIST=" + nodes, "SLURM_NODELIST=" + nodes,
		"CUDA_VISIBLE_DEVICES=" + cards}
	if body.ArrayIndex != nil {
		out = append(out, "SLURM_ARRAY_JOB_ID="+strconv.FormatInt(body.ArrayJobID, 10), "SLURM_ARRAY_TASK_ID="+strconv.Itoa(*body.ArrayIndex))
	}
	at, indexes := d.cards.indexes(), make([]string, len(s.Cards))
	for i, c := range s.Cards {
		indexes[i] = strconv.Itoa(at[c.UUID])
	}
	if len(indexes) > 0 {
		out = append(out, "SLURM_JOB_GPUS="+strings.Join(indexes, ","), "GPU_DEVICE_ORDINAL="+strings.Join(indexes, ","))
	}
	return out
}

// hook runs the programs of a hook, each after the one before, until one fails.
func (d *daemon) hook(ctx context.Context, which, path string, r *hookRecord) error {
	if path == "" {
		return nil
	}
	began := time.Now()
	programs, err := sitehook.Programs(path)
	env := append(slices.Clone(r.Env), "GANG_HOOK="+which, "SLURM_SCRIPT_CONTEXT="+which+"_slurmd")
	var lines []string
	for _, p := range programs {
		if err == nil {
			var output string
			if output, err = (sitehook.Program{Path: p, Timeout: d.now().Hooks.Timeout, Start: d.startHook}).RunHook(ctx, env); output != "" {
				lines = append(lines, output)
			}
		}
	}
	r.note(which, time.Since(began), lines, err)
	log := d.log.With("hook", which, "job", r.Job, "epoch", r.Epoch, "took", time.Since(began).Round(time.Millisecond))
	if err != nil && ctx.Err() == nil {
		log.Warn("hook failed", "err", err)
	} else {
		log.Debug("hook ran")
	}
	return err
}

// hookOutput is kept of what all programs of a hook wrote: the end, where the reason is.
const hookOutput = 4096

// note keeps what came of a run of a hook, in place of the one before. One that succeeded without a word
// leaves nothing.
func (r *hookRecord) note(which string, took time.Duration, lines []string, err error) {
	r.Ran = slices.DeleteFunc(r.Ran, func(h api.HookRun) bool { return h.Hook == which })
	if len(lines) == 0 && err == nil {
		return
	}
	text := strings.Join(lines, "\n")
	run := api.HookRun{Hook: which, Seconds: math.Round(took.Seconds()*1000) / 1000,
		Output: strings.ToValidUTF8(text[max(0, len(text)-hookOutput):], "")}
	if err != nil {
		run.Error = err.Error()
	}
	r.Ran = append(r.Ran, run)
}

// startHook starts a hook in a containment of its own: what it has left there ends with it.
func (d *daemon) startHook(cmd *exec.Cmd) (end func(), err error) {
	return d.startIn(cmd, proc.Limits{})
}

// startIn is startHook within limits.
func (d *daemon) startIn(cmd *exec.Cmd, within proc.Limits) (end func(), err error) {
	name := hookName + strconv.FormatUint(rand.Uint64(), 16)
	place := d.cgroups.Place(d.state.id+"-"+name, hookMarker+"="+d.state.id+"."+name)
	cmd.Env = append(cmd.Env, place.Marker)
	end = func() {
		if err := proc.KillContainment(place, killFor); err != nil {
			d.log.Warn("what a hook has left is not ended", "err", err)
		}
	}
	if place.Kind == proc.Group {
		return end, cmd.Start()
	}
	runtime.LockOSThread() // which enters groups of v1
	defer runtime.UnlockOSThread()
	box, err := proc.Make(place, within)
	if err != nil {
		return nil, err
	}
	if err = box.Enter(cmd.SysProcAttr); err == nil {
		err = cmd.Start()
	}
	box.Leave()
	if err != nil {
		end()
	}
	return end, err
}
