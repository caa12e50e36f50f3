// Package cli is what the commands of a person have in common, and the commands
// themselves: one file each, with the thin mains in cmd/.
//
// Rules that hold for every command:
//   - stdout is data, stderr is talk. An error is one line, "gqueue: text": what, why with
//     the numbers, the nearest valid choice, and the command to run.
//   - Exit status: 0 ok, 1 refused or failed, 2 usage, 3 not found, 4 controller
//     unreachable (see [exitCode]). --wait and grun give the job's own code.
//   - --help starts with three real examples; --version prints "gqueue VERSION".
//   - Tables on a terminal are drawn by tablewriter in the commands that people look at (see Drawer), and printed here in the others.
//   - Tables are truncated on a terminal only, coloured on a terminal only and never with
//     NO_COLOR; columns and widths of gqueue are squeue's.
//   - Nothing polls: what follows is pushed by the controller's event stream.
//
// A client's start-up is its speed: the import graph holds cobra, pkg/client
// and the pure packages; a test refuses configuration, SQL, metrics and GPU libraries.
//
// Begin with a command: its file has its name. It must not know the daemons: all it has comes from client.
package cli
