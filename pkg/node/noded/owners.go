package noded

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"gangd/pkg/api"
	"gangd/pkg/core/rankenv"
	"gangd/pkg/node/gpu"
	"gangd/pkg/node/proc"
	"gangd/pkg/wire/people"
)

// owners knows whose the processes are that hold VRAM. What was found out is kept as long as
// the process is listed: one that is being killed has neither environment nor cgroup any more.
type owners struct {
	member func(pid int) (api.MemberKey, bool)

	mu    sync.Mutex
	known map[int]owner
}

// owner is whose a process is.
type owner struct {
	start uint64 // of the process, which a number alone does not name
	ours  bool
	key   api.MemberKey
	rank  int // -1: not known
	comm  string
	user  string
}

// who names a process: python, ada.
func (o owner) who() string {
	switch {
	case o.comm == "" && o.user == "":
		return "not visible from here"
	case o.user == "":
		return o.comm
	}
	return o.comm + ", user " + o.user
}

// mpsServer is how the kernel names the process that works on a card for the programs of
// several others (CUDA MPS): whose work it does can't be told.
const mpsServer = "nvidia-cuda-mps"

// whose says who a process belongs to, as a member sees it.
func (o owner) whose(key api.MemberKey) gpu.Whose {
	switch {
	case o.ours && o.key == key:
		return gpu.Own
	case o.start == 0 || o.comm == mpsServer && !o.ours: // not to be seen from here, or gone before it was
		return gpu.Hidden
	}
	return gpu.Other
}

func newOwners(member func(int) (api.MemberKey, bool)) *owners {
	return &owners{member: member, known: map[int]owner{}}
}

func (o *owners) of(pid int) owner {
	o.mu.Lock()
	defer o.mu.Unlock()
	was, seen := o.known[pid]
	st, alive := proc.ReadStat(pid)
	if seen && (!alive || st.Dead() || st.Start == was.start) {
		return was
	}
	now := owner{start: st.Start, rank: -1, comm: st.Comm, user: o.user(pid)}
	now.key, now.ours = o.member(pid)
	if now.ours {
		now.rank = rankOf(pid)
	}
	o.known[pid] = now
	return now
}

// only forgets the processes that are listed no more.
func (o *owners) only(listed map[int]bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for pid := range o.known {
		if !listed[pid] {
			delete(o.known, pid)
		}
	}
}

// user names who a process belongs to, as far as that is known: nobody waits for a directory here.
func (o *owners) user(pid int) string {
	info, err := os.Stat("/proc/" + strconv.Itoa(pid))
	if err != nil {
		return ""
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	if u, known := people.Here.Known(st.Uid); known {
		return u.Name
	}
	return strconv.FormatUint(uint64(st.Uid), 10)
}

// rankOf reads the rank that a process was started in, -1 when it does not say.
func rankOf(pid int) int {
	if n, err := strconv.Atoi(proc.Variable(pid, "GANG_RANK")); err == nil {
		return n
	}
	return -1
}

// inCgroup gives the member whose group a process is in: groups are named
// STATE-JOB.EPOCH.NUMBER below part.
func inCgroup(pid int, part string) (api.MemberKey, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	if err != nil {
		return api.MemberKey{}, false
	}
	_, rest, ok := strings.Cut(string(b), "/"+part)
	if !ok {
		return api.MemberKey{}, false
	}
	return memberKey(rest)
}

// hasMarker gives the member whose marker a process carries, when it begins with prefix.
func hasMarker(pid int, prefix string) (api.MemberKey, bool) {
	rest, ok := strings.CutPrefix(proc.Variable(pid, rankenv.MarkerName), prefix)
	if !ok {
		return api.MemberKey{}, false
	}
	return memberKey(rest)
}

func keyName(k api.MemberKey) string { return fmt.Sprintf("%d.%d", k.Job, k.Epoch) }

// keyOf reads JOB.EPOCH and nothing else.
func keyOf(name string) (k api.MemberKey, ok bool) {
	k, ok = memberKey(name)
	return k, ok && k.Job > 0 && k.Epoch > 0 && name == keyName(k)
}

// memberKey reads JOB.EPOCH and what may follow.
func memberKey(s string) (k api.MemberKey, ok bool) {
	part := strings.SplitN(s, ".", 3)
	if len(part) < 2 {
		return k, false
	}
	var err error
	if k.Job, err = strconv.ParseInt(part[0], 10, 64); err != nil {
		return k, false
	}
	k.Epoch, err = strconv.Atoi(part[1])
	return k, err == nil
}
