package gpu

// Whose says who a process belongs to, as one gang sees it.
type Whose int

// The answers.
const (
	Hidden Whose = iota // it can't be told
	Own
	Other
)

// Share is how much of a card's utilization is one gang's own. What can't be told apart is
// kept as two ends, so that nobody takes it for idle or for busy.
type Share struct {
	Low, High int  // percent that its processes used the card: at least, at most; -1: there is no figure at all
	Others    bool // somebody else is on the card
	Other     int  // the process that is most of them; 0: the driver lists none
}

// Share tells what a gang's own processes used. Shared says that somebody else is known to
// be on the card, whether or not the driver lists their processes.
func (s *Sample) Share(shared bool, whose func(pid int) Whose) Share {
	out := Share{Others: shared}
	var own, hidden, all, most int
	listed := false // a process of the gang, by the driver
	most = -1
	see := func(pid, weight int) Whose {
		w := whose(pid)
		listed = listed || w == Own
		if w != Own {
			out.Others = true
			if weight > most {
				out.Other, most = pid, weight
			}
		}
		return w
	}
	for _, u := range s.Users {
		switch see(u.PID, u.Utilization) {
		case Own:
			own += u.Utilization
		case Hidden:
			hidden += u.Utilization
		}
		all += u.Utilization
	}
	for _, p := range s.Processes {
		see(p.PID, 0)
	}
	total := s.Utilization
	if total < 0 {
		total = 100
	}
	switch {
	case !out.Others && s.Utilization >= 0: // nobody else could have
		out.Low, out.High = total, total
	case !s.UsersKnown && s.Utilization < 0:
		out.Low, out.High = -1, -1
	default:
		out.Low, out.High = own, own+hidden
		// What no process is said to have used may be the gang's where the driver does not see
		// its processes at all, or where its figures disagree by more than their sampling does
		// (all of it, where nothing is said of processes).
		if rest := total - all; rest > 0 && (!listed || rest > total/2) {
			out.High += rest
		}
	}
	out.Low, out.High = min(out.Low, 100), min(out.High, 100)
	return out
}
