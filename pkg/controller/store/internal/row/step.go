package row

import (
	"encoding/json"
	"fmt"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
)

type step struct {
	ID     int         `json:"id"`
	Key    string      `json:"key,omitempty"`
	Ask    api.StepAsk `json:"ask"`
	Secret string      `json:"secret,omitempty"`
	Parts  []part      `json:"parts,omitempty"`
	Ports  []int       `json:"ports,omitempty"`
	From   stepSet     `json:"from,omitzero"`
	Start  time.Time   `json:"start,omitzero"`
	Stop   bool        `json:"stop,omitempty"`
	By     string      `json:"by,omitempty"`
	Late   bool        `json:"late,omitempty"`
}

type part struct {
	Member   int      `json:"member"`
	Group    int      `json:"group,omitempty"`
	Tasks    []int    `json:"tasks,omitempty"`
	CPUs     int      `json:"cpus,omitempty"`
	Memory   int64    `json:"memory,omitempty"`
	Cards    []string `json:"cards,omitempty"`
	Over     bool     `json:"over,omitempty"`
	Known    bool     `json:"known,omitempty"`
	ExitCode int      `json:"exit_code,omitempty"`
	Signal   int      `json:"signal,omitempty"`
	OOM      bool     `json:"oom,omitempty"`
	Text     string   `json:"text,omitempty"`
	MaxRSS   int64    `json:"max_rss,omitempty"`
	CPUTime  float64  `json:"cpu_time,omitempty"`

	Ends []api.TaskEnd `json:"ends,omitempty"`

	Importing api.Import `json:"import,omitzero"`
}

type stepFault struct {
	Epoch    int    `json:"epoch"`
	Step     int    `json:"step"`
	ExitCode int    `json:"exit_code"`
	Text     string `json:"text"`
	Members  []int  `json:"members,omitempty"`
}

type stepImage struct {
	Name   string `json:"name"`
	Digest string `json:"digest"`
}

func encodeSteps(all []gang.Step) []step {
	var out []step
	for i := range all {
		s := &all[i]
		e := step{ID: s.ID, Key: s.Key, Ask: s.Ask, Secret: s.Secret, Ports: s.Ports, From: stepSet(s.From), Start: s.Start, Stop: s.Stop,
			By: s.By, Late: s.Late}
		for _, p := range s.Parts {
			e.Parts = append(e.Parts, part(p))
		}
		out = append(out, e)
	}
	return out
}

func decodeSteps(all []step) []gang.Step {
	var out []gang.Step
	for i := range all {
		s := &all[i]
		d := gang.Step{ID: s.ID, Key: s.Key, Ask: s.Ask, Secret: s.Secret, Ports: s.Ports, From: gang.StepSet(s.From), Start: s.Start,
			Stop: s.Stop, By: s.By, Late: s.Late}
		for _, p := range s.Parts {
			d.Parts = append(d.Parts, gang.StepPart(p))
		}
		out = append(out, d)
	}
	return out
}

// Step encodes a step that has ended whole: its form on the wire is its form on the disk.
func Step(s *api.Step) ([]byte, error) { return json.Marshal(s) }

// DecodeStep decodes a step.
func DecodeStep(job int64, data []byte) (api.Step, error) {
	var s api.Step
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("row of a step of job %d: %w", job, err)
	}
	return s, nil
}
