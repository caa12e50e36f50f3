// Package program runs a program of a person: its exit status, the wording of its errors,
// its help. It is what pkg/client/cli (tables, queries) and pkg/client/submit share.
//
// It is apart from pkg/client/cli for gsubmit's start-up: that one prints no table, and the table
// library with what it brings along (database/sql, log/slog) cost it 0.7 of 2.1 ms CPU.
//
// Rules that hold for every command:
//   - stdout is data, stderr is talk. An error is one line, "gqueue: text".
//   - Exit status: 0 ok, 1 refused or failed, 2 usage, 3 not found, 4 controller
//     unreachable (see [ExitCode]). --wait gives the job's own code.
//   - --help starts with three real examples; --version prints "gqueue VERSION".
//
// Begin with Main and Run. It must not know what a command does, and draws no tables.
package program
