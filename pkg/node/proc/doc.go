// Package proc holds processes together and proves that they are gone.
//
// A [Containment] is what holds every process of one member, from its first instruction to
// the proof that none is left. There are three kinds, best first:
//
//   - cgroup2: a fresh cgroup v2. Ranks are cloned into it; cgroup.kill ends all of it at
//     once, forks under way included; rmdir succeeds only when it is empty, which is the proof.
//   - cgroup1: a fresh group in a v1 hierarchy (freezer, else pids). The starting thread
//     enters it, forks, and leaves; freeze, kill all, thaw, until rmdir succeeds.
//   - group: no cgroup. The shim is the child subreaper, so every orphan becomes its child:
//     "no child left" proves "no descendant left". When the shim is dead the marker in the
//     environment is what remains to find them by.
//
// Invariants:
//   - A cgroup is made fresh for one epoch and never used again: after cgroup.kill later
//     clones into the same group were killed too, 50 of 50.
//   - Nobody outside the containment is ever signalled: pids are taken from the group, or
//     re-checked by start time between scan and signal.
//
// Failure rules: a process that has gone is no error. What can't be read counts as present:
// emptiness needs proof.
//
// Begin with Containment, Make and Detect. It must not know the controller, or why
// something is ended.
package proc
