// Package measure makes of samples what an attempt used: a node's figures of one member
// ([Fold]), of these what the attempt used of what it held ([Of]), and of that what to ask for
// next time ([Advise]).
//
// Invariants:
//   - Pure: the time and the readings come in. A fold does not grow with the length of a run, and
//     what is made of it is at most 2 KB a member and card.
//   - What was not seen is unknown and stays it: it is no part of a mean, and a sum of which a part
//     is unknown is unknown. 0 was seen to be 0.
//   - A sample counts for the time since the one before. A gap longer than [Gap] is unknown but for
//     what the kernel counted meanwhile (CPU time).
//   - Advice is silent rather than wrong: about runs that were short or did not end well, about whole
//     nodes, about what is not known.
//
// The package knows neither cgroups nor NVML. Begin with Fold and Of.
package measure
