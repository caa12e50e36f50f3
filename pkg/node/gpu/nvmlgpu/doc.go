// Package nvmlgpu reads NVIDIA cards through NVML, from a process of its own.
//
// NVML is called in a probe child only (`gnoded gpu-probe`, [ProbeMain]), because any call
// after an NVML initialisation that failed ends the process, and because a call can hang
// in the driver for good. The [Provider] runs the child, asks it line by line, and ends it
// when it does not answer in time.
//
// States of a [Provider]: idle -> asking (a child lives) -> idle with the reason why the
// last child ended, until the time of the next try -> closed.
//
// Invariants: one child at a time, killed ones that are stuck in the kernel included; one
// question at a time; a child never makes a second NVML call after a failed Init; a child
// ends when its standard input does, so it never outlives the daemon.
//
// Failure rules: no library, no driver, or a build without cgo is "no cards", with a note
// in the log. A hung or dead child is an error of the one reading that met it.
//
// Only cmd/gnoded imports this package.
//
// Begin with Provider and ProbeMain. It must not know jobs or members.
package nvmlgpu
