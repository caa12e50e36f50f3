// Package cmdline is the command line of every command that has a table of options: gsubmit
// and its directives, grun, and all commands under Slurm's names.
//
// Purpose: one row says all of an option: how it is written ([Option.Long], Names, Short,
// Kind), how it is kept beside Slurm's ([List]: exactly, partly, refused), what is said of it,
// and what it does ([Option.Set]). From the table a line is read ([Grammar.Parse]), explained
// (--help, --help=slurm) and compared with Slurm's. What has no row is an unrecognized option,
// so nothing is ignored in silence.
//
// A line is read as getopt_long of the C library reads it: options and arguments in any order
// unless the grammar stops at the first argument; "--" ends the options; a long name may be cut
// short while it stays unambiguous; letters may be written in one word; the value of a letter
// may be glued to it.
//
// Here is also what every command says and takes alike: the names under which programs are
// called, ids of jobs, names of signals. The package is pure and asks no controller.
//
// Begin with Option and Grammar. It must not know the controller, or what one command does
// with its options.
package cmdline
