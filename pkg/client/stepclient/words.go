package stepclient

// words are the sentences of a step. Tools read those of srun; grun has its own, for people. Each has the same values.
type words struct {
	launch, noWord                            string // the step's name, why; and nodes, how long
	ending, ended, lost                       string // the step's name
	first                                     string // seconds
	began, busy                               string // the job's name
	interrupt, ctrlC, again, forcing, waiting string // of Ctrl-C; ctrlC has the step's name, waiting seconds
	state                                     string // the step's name, tasks, what they do
}

var srunWords = words{
	launch: "task launch for StepId=%s failed: %w", noWord: "task launch for StepId=%s timed out: no word from %s within %s",
	ending: "launch/slurm: _step_signal: Terminating StepId=%s", ended: "Force Terminated StepId=%s", lost: "Node failure; aborting StepId=%s",
	first: "First task exited %ds ago", began: "Step created for job %s", busy: "Job %s step creation temporarily disabled, retrying " +
		"(Requested nodes are busy)",
	interrupt: "interrupt (one more within 1 sec to abort)", ctrlC: "sending Ctrl-C to StepId=%s", again: "job abort in progress",
	forcing: "forcing job termination",
	waiting: "Job step aborted: Waiting up to %d seconds for job step to finish.", state: "StepId=%s %s: %s",
}

var ownWords = words{
	launch: "step %s did not start: %w", noWord: "step %s did not start: no word from %s within %s",
	ending: "ending step %s", ended: "step %s was ended by a signal", lost: "a node of step %s was lost: ending the step",
	first: "the first task ended %d s ago", began: "step of job %s begins", busy: "job %s has no room for another step yet: waiting for " +
		"one of its steps to end",
	interrupt: "Ctrl-C once more within a second ends the step", ctrlC: "sending Ctrl-C to step %s", again: "the step is being ended already",
	forcing: "ending the step",
	waiting: "waiting up to %d s for its tasks to end", state: "step %s, %s: %s",
}

// own reports whether the step is grun's, and not of a command that is called by Slurm's name.
func (o *Options) own() bool { return o.Name == "grun" }

func (s *step) words() *words {
	if s.o.own() {
		return &ownWords
	}
	return &srunWords
}
