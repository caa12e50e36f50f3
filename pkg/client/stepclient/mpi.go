package stepclient

import (
	"cmp"
	"fmt"

	"gangd/pkg/api"
	"gangd/pkg/wire/stepwire"
)

// mpi is what the tasks of the step are served: what its user says, else the site.
func (s *step) mpi() string { return cmp.Or(s.o.MPI, s.reply.MPIDefault, api.MPINone) }

func (s *step) wantsPMI() bool  { return s.mpi() == api.MPIPMI2 }
func (s *step) wantsPMIx() bool { return s.mpi() == api.MPIPMIx }

// plugin is its name as Slurm's errors have it.
func (s *step) plugin() string { return s.mpi() }

// setMPI says in a body what the launcher serves. With PMIx all nodes have said whether they offer it, and the same.
func (s *step) setMPI(b *stepwire.Body) {
	b.PMI = s.wantsPMI()
	if s.wantsPMIx() {
		s.mu.Lock()
		b.PMIx = s.offers.of[s.reply.Nodes[b.Part].Name] == offer(true)
		s.mu.Unlock()
	}
}

// offer is what a node says of PMIx.
func offer(has bool) string {
	if has {
		return "PMIx is offered"
	}
	return "no PMIx is offered (libpmix.so.2 and gpmix)"
}

func otherOffer(says, others, other string) string {
	return fmt.Sprintf("%s here, and on %s %s: tasks of one step can't have it on some nodes alone", says, other, others)
}

func otherImage(says, others, other string) string {
	return fmt.Sprintf("the image is %s here and %s on %s: its tag was moved meanwhile", says, others, other)
}

// sayWithoutPMIx is said once of a step that asks for PMIx where no node offers it: what labs start so rarely calls it.
func (s *step) sayWithoutPMIx() {
	name := s.o.Name
	if name != "grun" {
		name += ": gangd"
	}
	s.out.Lock()
	defer s.out.Unlock()
	fmt.Fprintf(s.o.Say, "%s: --mpi=pmix: no PMIx is offered here: what calls it (programs of Open MPI) runs each task alone, as rank 0 "+
		"of 1; start that with mpirun in the allocation, which uses srun\n", name)
}
