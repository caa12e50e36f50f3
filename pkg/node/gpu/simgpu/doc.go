// Package simgpu simulates cards, for tests, `gangd dev` and demonstrations.
//
// The cards are made from a text (see [Parse]) and do nothing by themselves; a JSON file
// says at run time what they are seen doing (see [Steering]). The file is looked at every
// [PollInterval], so that a change is seen well within a heartbeat; without a file every
// card is idle, empty and well.
//
// A fault lasts as long as the file says so, as one that a reading shows; an Xid also until
// somebody resumes the card. Processes that the file names are real ones: they hold VRAM until
// they are gone.
//
// Failure rules: a file that can't be understood changes nothing. It is an error of one
// Sample, which names the file and the place, and the last good state stays.
//
// Begin with Parse and Steering. It must not know jobs, or which tests steer it.
package simgpu
