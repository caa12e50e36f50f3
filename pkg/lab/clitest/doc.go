// Package clitest plays scripts of commands (testscript) against a controller of fixtures,
// pkg/cli/fake: what a person types, what is printed, with which exit status it ends.
//
// [Main] makes a test binary the commands themselves, with a clock that stands still, so that
// what they print is the same every day. [Scripts] plays the scripts of a folder; each has a
// controller of its own, found by GANG_DIR and stopped when the script is over, and a folder
// without one in NOWHERE. Beside testscript's own commands there are
//
//	status N COMMAND ARG...  the command ends with the exit status N
//	asked TEXT               the controller was sent something with the text in it
//
// [Serve] is for tests that call a command as a function.
//
// Begin with Scripts. It must not know what a command does: it runs them all alike.
package clitest
