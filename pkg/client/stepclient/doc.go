// Package stepclient is the client's side of a step: what grun does between asking for the step
// and its exit code. It listens, hands launchers what to run, writes what tasks write, feeds
// them what it reads, passes signals on, and decides when a step ends early.
//
// States of a step: asked -> begun (the nodes are told) -> launched (every launcher has its
// body) -> over (every launcher said done, or was lost).
//
// Invariants:
//   - One frame of each node is held: output that nobody takes stops the tasks.
//   - Nothing runs without this process: launchers that lose it end their tasks.
//   - The exit code is the highest of the tasks', 128+signal where one ended it; as grun,
//     where a task that fails ends the others, it is that task's.
//
// Failure rules: a node that is lost ends the step. A step whose nodes do not come within
// the time that a launch may take is ended, with the controller's word on why.
//
// Begin with Run. It must not know processes, nodes or the command line: a launcher starts tasks,
// and grun reads options.
package stepclient
