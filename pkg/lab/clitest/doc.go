// Package clitest plays scripts of commands (testscript) against the small site of package sitetest: what a
// person types, what is printed, with which exit status it ends.
//
// [Main] makes a test binary the commands themselves, with a clock that stands still, so that
// what they print is the same every day. [Scripts] plays the scripts of a folder; each has a
// site of its own, found by GANG_DIR and ended when the script is over, and a folder
// without one in NOWHERE. Beside testscript's own commands there are
//
//	status N COMMAND ARG...  the command ends with the exit status N
//	asked TEXT               the controller was sent something with the text in it, or soon is
//
// Begin with Scripts. It must not know what a command does: it runs them all alike.
package clitest
