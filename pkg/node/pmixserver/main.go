package pmixserver

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"gangd/pkg/wire/pmi"
)

// Main serves the step that standard input tells, until that ends, and returns the exit status.
func Main() int {
	// Signals of the step are for its tasks.
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM,
		syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU)
	if err := serve(bufio.NewReaderSize(os.Stdin, 1<<20), os.Stdout); err != nil && !errors.Is(err, io.EOF) {
		return 1
	}
	return 0
}

// layout is where the tasks of a job are, as libpmix is told it: the nodes' names, the tasks of each, and by task its node and its
// number there.
func layout(j *pmi.XJob) (names, ranges string, nodeOf, localOf []int) {
	var hosts, tasks []string
	for _, n := range j.Nodes {
		hosts, tasks = append(hosts, n.Name), append(tasks, list(n.Tasks))
		for _, t := range n.Tasks {
			for len(nodeOf) <= t {
				nodeOf, localOf = append(nodeOf, 0), append(localOf, 0)
			}
		}
	}
	for i, n := range j.Nodes {
		for local, t := range n.Tasks {
			nodeOf[t], localOf[t] = i, local
		}
	}
	return strings.Join(hosts, ","), strings.Join(tasks, ";"), nodeOf, localOf
}

func list(numbers []int) string {
	var out []string
	for _, n := range numbers {
		out = append(out, strconv.Itoa(n))
	}
	return strings.Join(out, ",")
}
