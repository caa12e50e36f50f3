package proc

import "path/filepath"

// Of the processes and threads that a machine can have, members leave these for the daemon, its
// shims and the system: who can't fork can't end a fork bomb.
const (
	reservePart  = 8 // one of so many
	reserveLeast = 64
	reserveMost  = 4096
)

func withoutReserve(room int64) int64 {
	return room - min(max(room/reservePart, reserveLeast), reserveMost, room/2)
}

// KeepRoom has all members together leave room for who looks after them, and gives how many
// processes and threads they may have; 0: not known. Only the kernel can hold them to it together:
// without its controller it is a bound for each.
func (c *Cgroups) KeepRoom() int64 {
	dir := c.Sides[sidePIDs]
	if dir == "" && c.PIDs {
		dir = c.Dir
	}
	if dir == "" {
		return withoutReserve(processRoom(ownGroups()...))
	}
	most := withoutReserve(processRoom(filepath.Dir(dir)))
	if most > 0 {
		_ = limitSide(dir, sidePIDs, Limits{PIDs: most})
	}
	return most
}

// processRoom is how many processes and threads there can be in each of these groups, as far as
// the kernel and the groups around them say; 0: not known.
func processRoom(groups ...string) (room int64) {
	note := func(n int64) {
		if n > 0 && (room == 0 || n < room) {
			room = n
		}
	}
	note(numberIn("/proc/sys/kernel/pid_max"))
	note(numberIn("/proc/sys/kernel/threads-max"))
	for _, dir := range groups {
		for ; exists(dir + "/cgroup.procs"); dir = filepath.Dir(dir) {
			note(numberIn(dir + "/pids.max"))
		}
	}
	return room
}

// ownGroups are the groups of this process that may count processes.
func ownGroups() (dirs []string) {
	ms, self, _ := hierarchies()
	for _, m := range ms {
		switch {
		case m.fs == "cgroup2":
			dirs = append(dirs, m.path(ownGroup(self, "")))
		case m.fs == "cgroup" && m.has(sidePIDs):
			dirs = append(dirs, m.path(ownGroup(self, sidePIDs)))
		}
	}
	return dirs
}
