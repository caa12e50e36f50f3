// Package gpu is how gnoded learns of its cards. A [Provider] is either NVML (nvmlgpu)
// or simulated (simgpu); both pass the contract test in gputest.
//
// A card is what a rank can be given: a GPU, or each MIG instance of one that is cut up.
// Indexes number the list from 0 and stay while the provider lives; the UUID is what a
// card is known by everywhere else.
//
// Invariants: every sample is of a card of the inventory; VRAM and process figures are in
// bytes; a provider may be called from several goroutines.
//
// Failure rules: no driver is "no cards", never an error. A figure that can't be had is
// unknown (-1), never zero. A reading that can't be had at all is an error and costs that
// reading: the caller keeps what it last knew.
//
// Begin with Provider and Sample. It must not know jobs, gangs or what a card is granted to.
package gpu
