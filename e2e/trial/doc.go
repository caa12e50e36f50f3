// Package trial is what the end-to-end tests of one machine (e2e) and of several hosts
// (e2e/hosts) share: a person at a shell who calls the built programs, reads what they print,
// and waits for jobs; the ends of the daemons' logs; how often a long test repeats.
//
// A [Client] fails its test where a program does not do what it has to; no wait ends by itself
// before [Patience] is over.
package trial
