// Package transcript writes down what happens in a test, whole, and compares it with the file that was kept of it. A
// test that looks at three figures of what a rule changes does not see the fourth; a transcript has all of them, and
// whoever changes a rule reads in the difference what else it moves.
//
// A transcript is the section of the test's name in testdata/transcripts/TEST.txt, where TEST is the outermost test.
// Begin with [Of] and [Printer]. It must not know what it writes down: the test of a package says that.
package transcript
