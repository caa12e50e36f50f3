// Package hosts tests the built programs on several hosts of one machine: each host is a
// process of its own network, mount, UTS, IPC and PID namespaces, wired to a bridge; gangd runs on
// one, gnodeds that joined with a token over TLS on the others. What a host loses is taken
// from it for real: packets, disk, inodes, fsync, processes, its life.
//
// What the daemons say is compared with witnesses: each rank holds a lock of the kernel's on
// a file of its (job, epoch, rank) for as long as any process of it exists, and writes when
// it lived on CLOCK_BOOTTIME and how it ended. So two epochs that overlap, a process that
// escaped and an exit code that was lost or invented are seen whatever the daemons believe.
//
// It needs root. A test that needs what this machine lacks skips and names it: iptables for
// one-way cuts and resets, strace for a failing fsync, a pids cgroup for fork bombs.
// The long forms run with GANG_E2E_CHAOS=1 (make chaos), which prints what was done how often
// and what was violated.
package hosts
