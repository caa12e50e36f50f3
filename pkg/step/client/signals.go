package client

import (
	"os"
	"syscall"
	"time"

	"gangd/pkg/step/wire"
)

// againWithin is how close the second Ctrl-C must follow the first to mean it.
const againWithin = time.Second

// signalled does what srun does: the first Ctrl-C says how the step is, a second one within a
// second is passed on to the tasks, the next ends them. TERM, HUP and QUIT end them at once,
// everything else is passed on.
func (s *Step) signalled(sig os.Signal) {
	switch sig {
	case syscall.SIGINT:
		s.interrupted()
	case syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT:
		s.say("forcing job termination")
		s.Kill(s.isKilled())
	case syscall.SIGWINCH:
		if s.o.Body.PTY != nil && s.o.Stdin != nil {
			s.resize()
		}
	case syscall.SIGCONT:
	case syscall.SIGUSR1:
		s.forward("USR1")
	case syscall.SIGUSR2:
		s.forward("USR2")
	case syscall.SIGALRM:
		s.forward("ALRM")
	}
}

func (s *Step) forward(name string) {
	s.toViewers(wire.Signal, 0, []byte(name))
	s.toAll(wire.Signal, []byte(name))
}

func (s *Step) interrupted() {
	s.mu.Lock()
	n := len(s.ctrlC)
	again := n > 0 && time.Since(s.ctrlC[n-1]) <= againWithin
	if !again && !s.aborting {
		s.ctrlC = nil
	}
	s.ctrlC = append(s.ctrlC, time.Now())
	aborting := s.aborting
	s.aborting = s.aborting || again
	s.mu.Unlock()
	switch {
	case s.o.QuitOnInt && !aborting && !again:
		s.say("forcing job termination")
		s.Kill(s.isKilled())
	case aborting:
		s.say("forcing job termination")
		s.Kill(s.isKilled())
	case again:
		s.say("sending Ctrl-C to StepId=%s", s.text())
		s.forward("INT")
	default:
		s.say("interrupt (one more within 1 sec to abort)")
		s.states()
	}
}
