// Package limits tests that jobs are held to the memory and the processes that they may have, with
// the built programs: on this machine as it is, in each other way that it allows, and in virtual
// machines with a kernel of Debian's that has cgroup v2 alone, v1 alone, both, or none of them
// mounted. The test program is the first process of such a machine, and runs the same tests there.
package limits
