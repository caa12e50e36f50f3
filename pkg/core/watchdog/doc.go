// Package watchdog is the rules by which a gang is found stalled, hanging or idle. They are
// pure: readings and the time come in, findings go out; no clock, no I/O.
//
// The parts, and who runs them:
//
//	gshim    [Silence]   of each rank: no beat for so long since the last one
//	gnoded   [Check]     of a member: some fresh readings of its cards, on request
//	         [Window]    of a member: readings of its cards for as long as it runs
//	gangd    [Merge]     of a gang: the findings of its members together (see package gang)
//
// One definition of idle serves all rules. A card is idle in a reading at most at the
// site's idle percentage. A series of readings is quiet when every card was idle in
// each of them and its memory moved less than the site's static bytes between its highest
// and its lowest.
//
// Invariants:
//   - Only a quiet series ends anything, and a series with one missing figure is not quiet:
//     silence alone, or a node that can't see, never does.
//   - What was seen for certain outweighs what was not seen: one busy card is enough to
//     dismiss, however many others are unknown.
//   - A rank that never beat is not silent. Readings from before the load grace is over are
//     not looked at.
//   - A window is counted from its first reading; a missing figure, a busy card, memory that
//     moved or a gap between readings begins it anew.
//
// Failure rules: whoever can't read says so (unknown) and is told of by [Window] when it
// lasts for [BlindWindows] windows, so that a guard that can't see does not stay silent.
//
// Begin with Series (what idle and quiet mean), Silence and Window. It must not know what is done about
// a finding: gang decides that.
package watchdog
