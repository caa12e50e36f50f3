package row

import (
	"encoding/json"
	"fmt"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/gang"
)

type slot struct {
	Node  string   `json:"node,omitempty"`
	Cards []string `json:"cards,omitempty"`
}

type rank struct {
	State    api.RankState `json:"state"`
	Slot     slot          `json:"slot,omitzero"`
	PID      int           `json:"pid,omitempty"`
	Start    time.Time     `json:"start,omitzero"`
	End      time.Time     `json:"end,omitzero"`
	Exited   bool          `json:"exited,omitempty"`
	Own      bool          `json:"own,omitempty"`
	ExitCode int           `json:"exit_code,omitempty"`
	Signal   int           `json:"signal,omitempty"`
	OutStart int64         `json:"out_start,omitempty"`
	ErrStart int64         `json:"err_start,omitempty"`
	VRAMPeak int64         `json:"vram_peak,omitempty"`
}

// IsZero lets a slot without a node be left out.
func (s slot) IsZero() bool { return s.Node == "" && len(s.Cards) == 0 }

// Blank reports whether a rank is blocked and carries nothing else: such a rank has no row.
func Blank(r *gang.Rank) bool {
	return r.State == api.RankBlocked && slot(r.Slot).IsZero() && r.PID == 0 &&
		r.Start.IsZero() && r.End.IsZero() && !r.Exited && !r.Own && r.ExitCode == 0 && r.Signal == 0 &&
		r.OutStart == 0 && r.ErrStart == 0 && r.VRAMPeak == 0
}

// Rank encodes one rank.
func Rank(r *gang.Rank) ([]byte, error) {
	return json.Marshal(&rank{r.State, slot(r.Slot), r.PID, r.Start, r.End, r.Exited, r.Own, r.ExitCode, r.Signal, r.OutStart, r.ErrStart,
		r.VRAMPeak})
}

// DecodeRank decodes one rank.
func DecodeRank(jobID int64, index int, data []byte) (gang.Rank, error) {
	var r rank
	if err := json.Unmarshal(data, &r); err != nil {
		return gang.Rank{}, fmt.Errorf("row of rank %d of job %d: %w", index, jobID, err)
	}
	return gang.Rank{State: r.State, Slot: cluster.Slot(r.Slot), PID: r.PID, Start: r.Start, End: r.End,
			Exited: r.Exited, Own: r.Own, ExitCode: r.ExitCode, Signal: r.Signal, OutStart: r.OutStart, ErrStart: r.ErrStart, VRAMPeak: r.VRAMPeak},
		nil
}

type epoch struct {
	Slots     []slot    `json:"slots,omitempty"`
	Started   time.Time `json:"started,omitzero"`
	Ended     time.Time `json:"ended,omitzero"`
	Cause     api.Cause `json:"cause,omitempty"`
	Trigger   int       `json:"trigger"`
	ExitCodes []int     `json:"exit_codes,omitempty"`
	Signals   []int     `json:"signals,omitempty"`
	OutStarts []int64   `json:"out_starts,omitempty"`
	ErrStarts []int64   `json:"err_starts,omitempty"`
	VRAMPeak  int64     `json:"vram_peak,omitempty"`
	Booking   *booking  `json:"booking,omitempty"`

	Text      string      `json:"text,omitempty"`
	Tied      []int       `json:"tied,omitempty"`
	StartedBy *report     `json:"started_by,omitempty"`
	Ends      []epochEnd  `json:"ends,omitempty"`
	Stacks    *api.Stacks `json:"stacks,omitempty"`
}

type epochEnd struct {
	Rank   int           `json:"rank"`
	After  time.Duration `json:"after"`
	Within time.Duration `json:"within,omitempty"`
	Own    bool          `json:"own,omitempty"`
}

// Epoch encodes an attempt, all but its job and number.
func Epoch(e *gang.EpochRow) ([]byte, error) {
	r := epoch{Started: e.Started, Ended: e.Ended, Cause: e.Cause, Trigger: e.Trigger, ExitCodes: e.ExitCodes, Signals: e.Signals,
		OutStarts: e.OutStarts, ErrStarts: e.ErrStarts, VRAMPeak: e.VRAMPeak, Booking: encodeBooking(e.Booking),
		Text: e.Text, Tied: e.Tied, StartedBy: (*report)(e.StartedBy), Ends: each(e.Ends, func(x gang.EpochEnd) epochEnd { return epochEnd(x) }),
		Stacks: e.Stacks}
	for _, s := range e.Slots {
		r.Slots = append(r.Slots, slot(s))
	}
	return json.Marshal(&r)
}

// DecodeEpoch decodes an attempt.
func DecodeEpoch(jobID int64, number int, data []byte) (gang.EpochRow, error) {
	var r epoch
	if err := json.Unmarshal(data, &r); err != nil {
		return gang.EpochRow{}, fmt.Errorf("row of epoch %d of job %d: %w", number, jobID, err)
	}
	e := gang.EpochRow{Job: jobID, Epoch: number, Started: r.Started, Ended: r.Ended, Cause: r.Cause,
		Trigger: r.Trigger, ExitCodes: r.ExitCodes, Signals: r.Signals, OutStarts: r.OutStarts, ErrStarts: r.ErrStarts, VRAMPeak: r.VRAMPeak,
		Booking: decodeBooking(r.Booking),
		Text:    r.Text, Tied: r.Tied, StartedBy: (*gang.Report)(r.StartedBy), Ends: each(r.Ends,
			func(x epochEnd) gang.EpochEnd { return gang.EpochEnd(x) }), Stacks: r.Stacks}
	for _, s := range r.Slots {
		e.Slots = append(e.Slots, cluster.Slot(s))
	}
	return e, nil
}

type node struct {
	State     api.NodeState `json:"state"`
	Reason    string        `json:"reason,omitempty"`
	Admin     string        `json:"admin,omitempty"`
	DrainUser string        `json:"drain_user,omitempty"`
	DrainTime time.Time     `json:"drain_time,omitzero"`
	DrainBy   time.Time     `json:"drain_by,omitzero"`
	Down      bool          `json:"down,omitempty"`
	BootID    string        `json:"boot_id,omitempty"`
	LastSeen  time.Time     `json:"last_seen,omitzero"`
	LostSince time.Time     `json:"lost_since,omitzero"`
	Strikes   []strike      `json:"launch_strikes,omitempty"`
	Hello     api.Hello     `json:"hello"`
	Connected bool          `json:"connected,omitempty"`
	Sick      string        `json:"sick,omitempty"`
	Left      []left        `json:"left,omitempty"`
	Res       *resources    `json:"res,omitempty"`
}

type strike struct {
	Time  time.Time `json:"time"`
	Job   int64     `json:"job"`
	User  string    `json:"user"`
	Blame api.Blame `json:"blame"`
	Text  string    `json:"text"`
}

type left struct {
	api.MemberKey
	Ran    bool   `json:"ran,omitempty"`
	Text   string `json:"text,omitempty"`
	Ports  []int  `json:"ports,omitempty"`
	Epilog bool   `json:"epilog,omitempty"`
	Member int    `json:"member,omitempty"`
}

type resources struct {
	Name        string       `json:"name"`
	Address     string       `json:"address,omitempty"`
	Ready       bool         `json:"ready,omitempty"`
	Away        bool         `json:"away,omitempty"`
	NotReady    string       `json:"not_ready,omitempty"`
	CPUs        int64        `json:"cpus"`
	Shape       api.CPUShape `json:"shape,omitzero"`
	MemoryBytes int64        `json:"memory_bytes"`
	TmpBytes    int64        `json:"tmp_bytes,omitempty"`
	CPUsEach    int64        `json:"cpus_each,omitempty"`
	MemoryEach  int64        `json:"memory_each,omitempty"`
	TmpEach     int64        `json:"tmp_each,omitempty"`
	Features    []string     `json:"features,omitempty"`
	Partitions  []string     `json:"partitions,omitempty"`
	Cards       []card       `json:"cards,omitempty"`
	Grants      []grant      `json:"grants,omitempty"`
}

type card struct {
	api.CardInfo
	State          api.CardState `json:"state,omitempty"`
	Reason         string        `json:"reason,omitempty"`
	StrangersBytes int64         `json:"strangers_bytes,omitempty"`
	UsedBytes      int64         `json:"used_bytes,omitempty"`
	Utilization    int           `json:"utilization"`
	Fault          string        `json:"fault,omitempty"`
	Held           string        `json:"held,omitempty"`
	Drained        string        `json:"drained,omitempty"`
}

type grant struct {
	api.MemberKey
	Ranks     int         `json:"ranks"`
	CPUs      int64       `json:"cpus"`
	Memory    int64       `json:"memory,omitempty"`
	Tmp       int64       `json:"tmp,omitempty"`
	Cards     []cardGrant `json:"cards,omitempty"`
	Exclusive bool        `json:"exclusive,omitempty"`
	Until     time.Time   `json:"until,omitzero"`
}

type cardGrant struct {
	UUID      string `json:"uuid"`
	VRAMBytes int64  `json:"vram_bytes,omitempty"`
	Exclusive bool   `json:"exclusive,omitempty"`
}

// Node encodes a node, all but its name.
func Node(n *gang.Node) ([]byte, error) {
	r := node{State: n.State, Reason: n.Reason, Admin: n.Admin, DrainUser: n.DrainUser, DrainTime: n.DrainTime, DrainBy: n.DrainBy,
		Down: n.Down, BootID: n.BootID, LastSeen: n.LastSeen,
		LostSince: n.LostSince, Strikes: each(n.Strikes, func(x gang.Strike) strike { return strike(x) }), Hello: n.Hello, Connected: n.Connected,
		Sick: n.Sick}
	for _, l := range n.Left {
		r.Left = append(r.Left, left{MemberKey: l.MemberKey, Ran: l.Ran, Text: l.Text, Ports: l.Ports, Epilog: l.Epilog, Member: l.Member})
	}
	if n.Res != nil {
		r.Res = encodeResources(n.Res)
	}
	return json.Marshal(&r)
}

func encodeResources(n *cluster.Node) *resources {
	r := &resources{Name: n.Name, Address: n.Address, Ready: n.Ready, Away: n.Away, NotReady: n.NotReady, CPUs: n.Has[cluster.CPUs],
		Shape:       n.Shape,
		MemoryBytes: n.Has[cluster.Memory], TmpBytes: n.Has[cluster.Tmp], CPUsEach: n.Each[cluster.CPUs], MemoryEach: n.Each[cluster.Memory],
		TmpEach: n.Each[cluster.Tmp], Features: n.Features, Partitions: n.Partitions}
	for _, c := range n.Cards {
		r.Cards = append(r.Cards, card(c))
	}
	for _, g := range n.Grants {
		e := grant{MemberKey: g.MemberKey, Ranks: g.Ranks, CPUs: g.Takes[cluster.CPUs], Memory: g.Takes[cluster.Memory],
			Tmp: g.Takes[cluster.Tmp], Exclusive: g.Exclusive, Until: g.Until}
		for _, c := range g.Cards {
			e.Cards = append(e.Cards, cardGrant(c))
		}
		r.Grants = append(r.Grants, e)
	}
	return r
}

// DecodeNode decodes a node.
func DecodeNode(name string, data []byte) (*gang.Node, error) {
	var r node
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("row of node %s: %w", name, err)
	}
	n := &gang.Node{Name: name, State: r.State, Reason: r.Reason, Admin: r.Admin, DrainUser: r.DrainUser, DrainTime: r.DrainTime,
		DrainBy: r.DrainBy, Down: r.Down, BootID: r.BootID, LastSeen: r.LastSeen,
		LostSince: r.LostSince, Strikes: each(r.Strikes, func(x strike) gang.Strike { return gang.Strike(x) }), Hello: r.Hello,
		Connected: r.Connected, Sick: r.Sick}
	for _, l := range r.Left {
		n.Left = append(n.Left, gang.Left{MemberKey: l.MemberKey, Ran: l.Ran, Text: l.Text, Ports: l.Ports, Epilog: l.Epilog, Member: l.Member})
	}
	if r.Res != nil {
		n.Res = decodeResources(r.Res)
	}
	return n, nil
}

func decodeResources(r *resources) *cluster.Node {
	n := &cluster.Node{Name: r.Name, Address: r.Address, Ready: r.Ready, Away: r.Away, NotReady: r.NotReady, Shape: r.Shape,
		Has:  cluster.Amounts{cluster.CPUs: r.CPUs, cluster.Memory: r.MemoryBytes, cluster.Tmp: r.TmpBytes},
		Each: cluster.Amounts{cluster.CPUs: r.CPUsEach, cluster.Memory: r.MemoryEach, cluster.Tmp: r.TmpEach}, Features: r.Features,
		Partitions: r.Partitions}
	for _, c := range r.Cards {
		n.Cards = append(n.Cards, cluster.Card(c))
	}
	for _, g := range r.Grants {
		e := cluster.Grant{MemberKey: g.MemberKey, Ranks: g.Ranks, Takes: cluster.Amounts{cluster.CPUs: g.CPUs, cluster.Memory: g.Memory,
			cluster.Tmp: g.Tmp}, Exclusive: g.Exclusive, Until: g.Until}
		for _, c := range g.Cards {
			e.Cards = append(e.Cards, cluster.CardGrant(c))
		}
		n.Grants = append(n.Grants, e)
	}
	return n
}

// Event encodes an event whole: its form on the wire is its form on the disk.
func Event(e *api.Event) ([]byte, error) { return json.Marshal(e) }

// DecodeEvent decodes an event.
func DecodeEvent(seq int64, data []byte) (api.Event, error) {
	var e api.Event
	if err := json.Unmarshal(data, &e); err != nil {
		return e, fmt.Errorf("row of event %d: %w", seq, err)
	}
	return e, nil
}
