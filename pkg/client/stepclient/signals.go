package stepclient

import (
	"os"
	"syscall"
	"time"

	"gangd/pkg/wire/stepwire"
)

// againWithin is how close the second Ctrl-C must follow the first to mean it.
const againWithin = time.Second

// signalled does what srun does: the first Ctrl-C says how the step is, or with SendInt is passed
// on to the tasks; a second one within a second is passed on and ends them, as the first with
// QuitOnInt does. TERM, HUP and QUIT end them at once, everything else is passed on.
func (s *step) signalled(sig os.Signal) {
	switch sig {
	case syscall.SIGINT:
		s.interrupted()
	case syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT:
		s.abort()
		s.silent = false
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

func (s *step) forward(name string) {
	s.toViewers(stepwire.Signal, 0, []byte(name))
	s.toAll(stepwire.Signal, []byte(name))
}

func (s *step) interrupted() {
	again := time.Since(s.ctrlC) <= againWithin
	s.ctrlC = time.Now()
	end := again || s.o.QuitOnInt
	if !end && !s.o.SendInt {
		s.say("%s", s.words().interrupt)
		s.states()
		return
	}
	s.say(s.words().ctrlC, s.text())
	s.forward("INT")
	if end {
		s.silent = !s.aborted // who ended them need not be told how they ended
		s.abort()
	}
}

// abort ends the tasks because a person said so; again: at once.
func (s *step) abort() {
	if s.aborted {
		s.say("%s", s.words().again)
	} else {
		s.say("%s", s.words().forcing)
		s.sayAborted()
	}
	s.aborted = true
	s.Kill(s.isKilled())
}

func (s *step) sayAborted() {
	s.say(s.words().waiting, int(s.reply.Allocation.Grace/time.Second)+2)
}
