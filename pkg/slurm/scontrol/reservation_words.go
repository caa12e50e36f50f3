package scontrol

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/core/script"
)

// reservationAsk is a reservation as it was asked for.
type reservationAsk struct {
	req     api.ReservationRequest
	now     time.Time
	users   change[string]
	account change[string]
	flags   change[api.ReservationFlag]
	longer  time.Duration // Duration+=, -=
	skip    bool
}

// change is what is put into a list and taken from it.
type change[S ~string] struct{ more, less []S }

// on is the list after it; nil where nothing was asked.
func (ch *change[S]) on(old []S) *[]S {
	if len(ch.more)+len(ch.less) == 0 {
		return nil
	}
	out := slices.DeleteFunc(append(slices.Clone(old), ch.more...), func(s S) bool { return slices.Contains(ch.less, s) })
	slices.Sort(out)
	out = slices.Compact(out)
	return &out
}

// badWord is a word of a reservation that is not taken.
type badWord struct {
	text string
	time *when.Error // what is wrong with a time
}

func (e *badWord) Error() string { return e.text }

// errno is what Slurm's update says behind it: only of a time there is an error number.
func (e *badWord) errno() string {
	if e.time != nil {
		return badTime
	}
	return "No error"
}

func (c *call) badReservation(err error, what string) int {
	if bad, ok := err.(*badWord); ok && bad.time != nil {
		c.say("%v", bad.time)
	}
	c.errorf("%v  %s", err, what)
	return 1
}

const wholeNodes = "whole nodes are reserved; name them: Nodes=n[1-4]"

// reservationParameters are the words of create and update.
var reservationParameters = []parameter[func(q *reservationAsk, sign, v string) error]{
	{"ReservationName", 3, cmdline.Exact, "", func(q *reservationAsk, _, v string) error { q.req.Name = v; return nil }},
	{"StartTime", 1, cmdline.Exact, "", func(q *reservationAsk, _, v string) error { return q.instant(&q.req.Start, "start", v) }},
	{"EndTime", 1, cmdline.Exact, "", func(q *reservationAsk, _, v string) error { return q.instant(&q.req.End, "end", v) }},
	{"Duration", 1, cmdline.Exact, "", setDuration},
	{"Flags", 2, cmdline.Partial, "MAINT, IGNORE_JOBS, DAILY, WEEKLY, SPEC_NODES, and gangd's DRAIN, which stops what runs there in time; " +
		"the others are refused", setFlags},
	{"NodeCnt", 5, cmdline.Partial, "so many nodes that are free then, out of those of Nodes where they are named; a list of numbers is " +
		"refused", setNodeCount},
	{"CoreCnt", 5, cmdline.Refused, wholeNodes, nil},
	{"Nodes", 5, cmdline.Exact, "nodes, as a list, or ALL", setReservedNodes},
	{"Features", 2, cmdline.Refused, wholeNodes, nil},
	{"Licenses", 2, cmdline.Refused, "reservations are of nodes", nil},
	{"PartitionName", 1, cmdline.Refused, wholeNodes, nil},
	{"Users", 1, cmdline.Partial, "who may use it; nobody can be left out with a minus before the name",
		func(q *reservationAsk, sign, v string) error { return names(&q.users, &q.req.Users, sign, v) }},
	{"Groups", 1, cmdline.Refused, "name the users or accounts", nil},
	{"Accounts", 1, cmdline.Partial, "under which they may; together with Users both have to hold",
		func(q *reservationAsk, sign, v string) error {
			return names(&q.account, &q.req.Accounts, sign, v)
		}},
	{"TRESPerNode", 5, cmdline.Refused, wholeNodes, nil},
	{"TRES", 1, cmdline.Refused, wholeNodes, nil},
	{"BurstBuffer", 2, cmdline.Refused, "there is none", nil},
	{"Watts", 1, cmdline.Refused, "power is not counted", nil},
	{"MaxStartDelay", 1, cmdline.Refused, "a reservation begins at its time", nil},
	{"PurgeComp", 2, cmdline.Refused, "delete it when it is done: scontrol delete reservation=NAME", nil},
	{"Comment", 3, cmdline.Refused, "give it a name that says it", nil},
	{"Skip", 2, cmdline.Exact, "update: leave out the next time of one that comes again", func(q *reservationAsk, _,
		_ string) error {
		q.skip = true
		return nil
	}},
}

// take reads one word.
func (q *reservationAsk) take(arg string, update bool) error {
	key, v, given := strings.Cut(arg, "=")
	sign := ""
	if n := len(key); given && n > 0 && (key[n-1] == '+' || key[n-1] == '-') {
		key, sign = key[:n-1], key[n-1:]
	}
	if !given && !(update && cmdline.Short(key, "Skip", 2)) {
		return &badWord{text: fmt.Sprintf("Misformatted parameter '%s', most options have a parameter after '='.", arg)}
	}
	for i := range reservationParameters {
		p := &reservationParameters[i]
		switch {
		case !cmdline.Short(key, p.name, p.min):
			continue
		case p.set == nil:
			return &badWord{text: fmt.Sprintf("%s is refused: %s.", p.name, p.text)}
		case sign != "" && p.name == "Nodes":
			return &badWord{text: "The +=/-= notation is not supported when updating nodes."}
		}
		return p.set(q, sign, v)
	}
	return &badWord{text: fmt.Sprintf("Unknown parameter %s.", arg)}
}

func (q *reservationAsk) instant(into **time.Time, which, v string) error {
	t, err := when.Parse(v, q.now, when.Future)
	if err != nil {
		bad, _ := err.(*when.Error)
		return &badWord{text: fmt.Sprintf("Invalid %s time %stime=%s.", which, which, v), time: bad}
	}
	*into = &t
	return nil
}

// aYear is what Slurm makes of a duration without an end.
const aYear = 365 * 24 * time.Hour

func setDuration(q *reservationAsk, sign, v string) error {
	d, err := script.ParseTime(v)
	switch {
	case strings.EqualFold(v, "infinite"), strings.EqualFold(v, "unlimited"):
		d = aYear
	case err != nil || d <= 0 || strings.ContainsAny(v, "smhdSMHD"):
		return &badWord{text: fmt.Sprintf("Invalid duration duration=%s.", v)}
	}
	switch sign {
	case "+":
		q.longer = d
	case "-":
		q.longer = -d
	default:
		q.req.Duration = &d
	}
	return nil
}

func setNodeCount(q *reservationAsk, sign, v string) error {
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 || sign != "" {
		return &badWord{text: fmt.Sprintf("Invalid node count %s.", v)}
	}
	q.req.NodeCount = &n
	return nil
}

func setReservedNodes(q *reservationAsk, _, v string) error {
	list, err := hostlist.Expand(v)
	if err != nil {
		list = []string{v} // no node has such a name, and so it is said
	}
	q.req.Nodes = &list
	return nil
}

// names is a list of who may, or what is added to it or taken from it.
func names(ch *change[string], whole **[]string, sign, v string) error {
	list := slices.DeleteFunc(strings.Split(v, ","), func(s string) bool { return s == "" })
	for _, n := range list {
		if strings.HasPrefix(n, "-") {
			return &badWord{text: fmt.Sprintf("%s is refused: nobody can be left out of a list; name those who may.", n)}
		}
	}
	switch sign {
	case "+":
		ch.more = append(ch.more, list...)
	case "-":
		ch.less = append(ch.less, list...)
	default:
		*whole = &list
	}
	return nil
}

type flagWord struct {
	name string
	min  int
	flag api.ReservationFlag
}

// flagWords are Slurm's, with the letters that are enough; those without a flag are refused,
// SPEC_NODES says what always is.
var flagWords = []flagWord{
	{"Maintenance", 1, api.FlagMaint}, {"Ignore_Jobs", 1, api.FlagIgnoreJobs}, {"Daily", 1, api.FlagDaily}, {"Weekly", 4, api.FlagWeekly},
	{"Drain", 2, api.FlagDrain}, {"Spec_Nodes", 2, ""},
}

var flagsRefused = strings.Fields("Overlap Hourly Weekday Weekend Any_Nodes License_Only Static_Alloc Part_Nodes First_Cores Time_Float " +
	"Replace Replace_Down Flex Magnetic Purge_Comp No_Hold_Jobs_After_End User_Delete")

// setFlags adds flags to those that there are, and takes away those behind a minus, until there is a plus, as Slurm does.
func setFlags(q *reservationAsk, sign, v string) error {
	for word := range strings.SplitSeq(v, ",") {
		w := strings.TrimLeft(word, "+-")
		if w != word {
			sign = word[:1]
		}
		i := slices.IndexFunc(flagWords, func(f flagWord) bool { return w != "" && cmdline.Short(w, f.name, f.min) })
		switch {
		case i >= 0 && flagWords[i].flag != "" && sign == "-":
			q.flags.less = append(q.flags.less, flagWords[i].flag)
		case i >= 0 && flagWords[i].flag != "":
			q.flags.more = append(q.flags.more, flagWords[i].flag)
		case i >= 0, word == "":
		case slices.ContainsFunc(flagsRefused, func(f string) bool { name, _, _ := strings.Cut(w, "="); return strings.EqualFold(name, f) }):
			return &badWord{text: fmt.Sprintf("Flags=%s is refused: gangd has MAINT, IGNORE_JOBS, DAILY, WEEKLY and DRAIN.", w)}
		default:
			return &badWord{text: fmt.Sprintf("Error parsing flags %s.", v)}
		}
	}
	return nil
}

// against settles what is said by comparison with what stands there.
func (q *reservationAsk) against(r *api.Reservation) error {
	if l := q.users.on(r.Users); l != nil {
		q.req.Users = l
	}
	if l := q.account.on(r.Accounts); l != nil {
		q.req.Accounts = l
	}
	if l := q.flags.on(r.Flags); l != nil {
		q.req.Flags = l
	}
	if q.longer != 0 {
		d := r.End.Sub(r.Start) + q.longer
		if d <= 0 {
			return &inSlurmsWords{badTime}
		}
		q.req.Duration = &d
	}
	if q.req.End != nil {
		q.req.Duration = nil
	}
	if q.skip {
		if r.Days() == 0 {
			return &inSlurmsWords{notSkipable}
		}
		next := r.Start.AddDate(0, 0, r.Days())
		q.req.Start = &next
	}
	return nil
}
