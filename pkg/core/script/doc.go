// Package script turns what a person wrote, in the script, in the environment and on the
// command line, into what the controller is asked for: an [api.Spec] and an [api.Array].
//
// Everything that can be asked for is one row of one table, [Options]: its names, its
// kind of value, what Slurm's sbatch makes of it (exact, partial, refused), its help and
// the function that puts a value into an [Ask]. Directives, environment variables, flags,
// the help, the manual page's test and `gsubmit --help=slurm` all come from that table.
//
// The steps, each usable alone:
//
//	Check(name, text)        is this a script that can run at all
//	Directives(name, text)   #GANG and #SBATCH lines up to the first command -> settings
//	Environ(environ)         GSUBMIT_* and SBATCH_* -> settings
//	Flags(args)              the command line -> settings and what stands behind them
//	Build(settings, now)     precedence, contradictions, derived figures -> Request
//
// Invariants:
//   - Pure: no clock, file, environment or goroutine; the same text gives the same answer.
//   - Nothing is silently dropped: each word of a directive ends as a setting, a [Warning]
//     or an [Error].
//   - The source that is closer to the person wins, [Source] is that order; within one
//     source the last wins. Options that say the same thing in two ways (--mem and
//     --mem-per-cpu) contradict each other inside one source, and replace each other
//     across sources.
//   - Every value is checked, also one that a closer source overrides.
//
// Failure rule: the first thing wrong is returned as an [*Error] with its place and what
// to write instead; no partial request comes back.
//
// Begin with table.go (every option) and Build. It must not know the controller, or whether the site
// can hold what is asked for.
package script
