// Command gshim is started by gnoded and holds members. See package shim.
package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"gangd/pkg/node/shim"
	"gangd/pkg/node/sitehook"
)

const usage = `usage: gshim DIR                                        hold the member in DIR
       gshim spare STATEDIR                             hold members below STATEDIR, one after the other
       gshim readlog --path=P [--offset=N] [--follow] [--head]   write a file to standard output
       gshim appendlog PATH                             write standard input behind a file
       gshim check                                      second stage, started by gshim itself
       gshim mounts private|container                   make mounts of a member, started by gshim itself
       gshim launch                                     become the launcher of a step in a container, started by gshim itself
       gshim as LOGIN PROGRAM ARG...                    run a program as a user, started by gnoded
       gshim missing PATH                               is nothing there, started by gshim itself
       gshim task|task-epilog HOOKS PATH ARG...         run hooks around a task, started by gshim itself
       gshim dump [look] RANK:PID|sSTEP:PID...          see where processes are, and write stacks to logs, started by gshim itself
`

func main() {
	os.Exit(run(os.Args[1:]))
}

// run takes the arguments apart by hand: a flag library costs more than all of prepare.
func run(args []string) int {
	switch {
	case len(args) == 1 && args[0] == "check":
		return shim.Check()
	case len(args) == 2 && args[0] == "mounts":
		return shim.Mounts(args[1])
	case len(args) == 1 && args[0] == "launch":
		return shim.Launch()
	case len(args) >= 3 && args[0] == "as":
		return shim.As(args[1:])
	case len(args) == 2 && args[0] == "missing":
		return shim.Missing(args[1])
	case len(args) >= 2 && (args[0] == sitehook.TaskWord || args[0] == sitehook.EpilogWord):
		return sitehook.TaskMain(args)
	case len(args) >= 1 && args[0] == "dump":
		return shim.Dump(args[1:])
	case len(args) >= 2 && args[0] == "spare":
		return shim.Spare()
	case len(args) >= 1 && args[0] == "readlog":
		return readLog(args[1:])
	case len(args) == 2 && args[0] == "appendlog":
		return appendLog(args[1])
	case len(args) == 1 && strings.HasPrefix(args[0], "/"):
		return shim.Main(args[0])
	}
	fmt.Fprint(os.Stderr, usage)
	return 2
}

func readLog(args []string) int {
	var path string
	var offset int64
	var follow, head bool
	for i := 0; i < len(args); i++ {
		name, value, inline := strings.Cut(args[i], "=")
		switch name {
		case "--follow":
			follow = true
			continue
		case "--head":
			head = true
			continue
		}
		if !inline && i+1 < len(args) {
			i++
			value = args[i]
		}
		var err error
		switch name {
		case "--path":
			path = value
		case "--offset":
			offset, err = strconv.ParseInt(value, 10, 64)
		default:
			err = fmt.Errorf("unknown option %q", name)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "gshim: %v\n%s", err, usage)
			return 2
		}
	}
	return logStatus(shim.ReadLog(os.Stdout, path, offset, follow, head))
}

func appendLog(path string) int {
	text, err := io.ReadAll(os.Stdin)
	if err == nil {
		err = shim.AppendLog(path, text)
	}
	return logStatus(err)
}

func logStatus(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, strings.TrimPrefix(err.Error(), "open "))
	return shim.ReadStatus(err)
}
