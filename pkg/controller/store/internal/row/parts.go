package row

import (
	"encoding/json"
	"fmt"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/gang"
)

// Blank reports whether a rank is blocked and carries nothing else: such a rank has no row.
func Blank(r *gang.Rank) bool {
	return r.State == api.RankBlocked && r.Slot.IsZero() && r.PID == 0 &&
		r.Start.IsZero() && r.End.IsZero() && !r.Exited && !r.Own && r.ExitCode == 0 && r.Signal == 0 &&
		r.OutStart == 0 && r.ErrStart == 0 && r.VRAMPeak == 0
}

// Rank encodes one rank.
func Rank(r *gang.Rank) ([]byte, error) { return json.Marshal(r) }

// DecodeRank decodes one rank.
func DecodeRank(jobID int64, index int, data []byte) (gang.Rank, error) {
	var r gang.Rank
	if err := json.Unmarshal(data, &r); err != nil {
		return gang.Rank{}, fmt.Errorf("row of rank %d of job %d: %w", index, jobID, err)
	}
	return r, nil
}

type epoch struct {
	*gang.EpochRow
	Job   *elsewhere `json:"job,omitempty"`
	Epoch *elsewhere `json:"epoch,omitempty"`
}

// Epoch encodes an attempt, all but its job and number.
func Epoch(e *gang.EpochRow) ([]byte, error) { return json.Marshal(&epoch{EpochRow: e}) }

// DecodeEpoch decodes an attempt.
func DecodeEpoch(jobID int64, number int, data []byte) (gang.EpochRow, error) {
	e := gang.EpochRow{Job: jobID, Epoch: number}
	if err := json.Unmarshal(data, &epoch{EpochRow: &e}); err != nil {
		return gang.EpochRow{}, fmt.Errorf("row of epoch %d of job %d: %w", number, jobID, err)
	}
	return e, nil
}

// node is a node; what it has and what is taken of that is by the names of resources here.
type node struct {
	*gang.Node
	Res  *resources `json:"res,omitempty"`
	Name *elsewhere `json:"name,omitempty"`
}

type resources struct {
	Name        string         `json:"name"`
	Address     string         `json:"address,omitempty"`
	Ready       bool           `json:"ready,omitempty"`
	Away        bool           `json:"away,omitempty"`
	NotReady    string         `json:"not_ready,omitempty"`
	CPUs        int64          `json:"cpus"`
	Shape       api.CPUShape   `json:"shape,omitzero"`
	MemoryBytes int64          `json:"memory_bytes"`
	TmpBytes    int64          `json:"tmp_bytes,omitempty"`
	CPUsEach    int64          `json:"cpus_each,omitempty"`
	MemoryEach  int64          `json:"memory_each,omitempty"`
	TmpEach     int64          `json:"tmp_each,omitempty"`
	Features    []string       `json:"features,omitempty"`
	Partitions  []string       `json:"partitions,omitempty"`
	Cards       []cluster.Card `json:"cards,omitempty"`
	Grants      []grant        `json:"grants,omitempty"`
}

type grant struct {
	api.MemberKey
	Ranks     int                 `json:"ranks"`
	CPUs      int64               `json:"cpus"`
	Memory    int64               `json:"memory,omitempty"`
	Tmp       int64               `json:"tmp,omitempty"`
	Cards     []cluster.CardGrant `json:"cards,omitempty"`
	Exclusive bool                `json:"exclusive,omitempty"`
	Until     time.Time           `json:"until,omitzero"`
}

// Node encodes a node, all but its name.
func Node(n *gang.Node) ([]byte, error) {
	r := node{Node: n}
	if n.Res != nil {
		r.Res = encodeResources(n.Res)
	}
	return json.Marshal(&r)
}

func encodeResources(n *cluster.Node) *resources {
	r := &resources{Name: n.Name, Address: n.Address, Ready: n.Ready, Away: n.Away, NotReady: n.NotReady, CPUs: n.Has[cluster.CPUs],
		Shape:       n.Shape,
		MemoryBytes: n.Has[cluster.Memory], TmpBytes: n.Has[cluster.Tmp], CPUsEach: n.Each[cluster.CPUs], MemoryEach: n.Each[cluster.Memory],
		TmpEach: n.Each[cluster.Tmp], Features: n.Features, Partitions: n.Partitions, Cards: n.Cards}
	for _, g := range n.Grants {
		r.Grants = append(r.Grants, grant{MemberKey: g.MemberKey, Ranks: g.Ranks, CPUs: g.Takes[cluster.CPUs], Memory: g.Takes[cluster.Memory],
			Tmp: g.Takes[cluster.Tmp], Cards: g.Cards, Exclusive: g.Exclusive, Until: g.Until})
	}
	return r
}

// DecodeNode decodes a node.
func DecodeNode(name string, data []byte) (*gang.Node, error) {
	n := &gang.Node{Name: name}
	r := node{Node: n}
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("row of node %s: %w", name, err)
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
		Partitions: r.Partitions, Cards: r.Cards}
	for _, g := range r.Grants {
		n.Grants = append(n.Grants, cluster.Grant{MemberKey: g.MemberKey, Ranks: g.Ranks, Takes: cluster.Amounts{cluster.CPUs: g.CPUs,
			cluster.Memory: g.Memory, cluster.Tmp: g.Tmp}, Cards: g.Cards, Exclusive: g.Exclusive, Until: g.Until})
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
