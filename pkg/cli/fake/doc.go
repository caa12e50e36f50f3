// Package fake is a controller for tests of commands: it answers on a unix socket what a
// test put into it, and remembers what it was asked. It decides nothing that the engine
// decides; it selects jobs as the controller's contract says, so that a command's text,
// JSON and exit status can be tested in milliseconds.
//
// Begin with Controller, and Small for a ready one. It must not know the engine, the store or
// the scheduler.
package fake
