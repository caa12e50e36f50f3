package simgpu

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"gangd/pkg/api"
)

// Steering is what a file says of one card. The file is an object with a member for each
// card that is not idle and well, by index or UUID, "*" for all that are not named:
//
//	{"0": {"used_by_strangers": "40G"}, "GPU-sim-n1-3": {"xid": 79}, "*": {"utilization": 90}}
//	{"2": {"processes": [{"pid": 4711, "used": "43.1G"}]}}
//	{"3": {"utilization": 60, "used_by_strangers": "9G", "processes": [{"pid": 4712, "utilization": 60}]}}
//
// The same object may stand under "cards", which may also be a list whose entries carry
// "index" or "uuid"; beside it "driver" may say why nothing can be read of any card:
//
//	{"driver": "driver not loaded", "cards": {}}
//	{"5": {"gone": true}}
//
// Sizes are bytes or texts such as "40G".
type Steering struct {
	Strangers   Size   `json:"used_by_strangers"` // VRAM held by processes of nobody's gang
	Used        Size   `json:"used"`              // VRAM held by gangs
	Utilization int    `json:"utilization"`       // percent, -1: it can't be read
	Xid         int    `json:"xid"`               // last fatal Xid
	Unhealthy   Reason `json:"unhealthy"`         // why the card must not be used
	Gone        bool   `json:"gone"`              // the driver does not list it
	// Processes share Used out: each is a real process on this machine, and what it holds is
	// free when it is gone. What they hold beyond Used counts as well. Once one of them has a
	// utilization, the simulated driver says which processes use the card, and the others do not.
	Processes []Process `json:"processes"`
}

// Process is a process of this machine that is said to hold VRAM, or to use the card.
type Process struct {
	PID         int  `json:"pid"`
	Used        Size `json:"used"`
	Utilization *int `json:"utilization"` // percent; not given: the driver does not say
}

// Size is a number of bytes, or a text such as "40G".
type Size int64

// UnmarshalJSON reads either form.
func (s *Size) UnmarshalJSON(b []byte) error {
	var text string
	if b[0] != '"' {
		text = string(b)
	} else if err := json.Unmarshal(b, &text); err != nil {
		return err
	}
	n, err := parseSize(text)
	*s = Size(n)
	return err
}

// Reason is a text, or true where the reason does not matter.
type Reason string

// UnmarshalJSON reads either form.
func (r *Reason) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case "true":
		*r = "simulated fault"
	case "false", "null":
		*r = ""
	default:
		return json.Unmarshal(b, (*string)(r))
	}
	return nil
}

// entry is a steering in a list.
type entry struct {
	Index *int   `json:"index"`
	UUID  string `json:"uuid"`
	Steering
}

// parseSteering gives what a file says of each card of the list, and of their driver.
func parseSteering(data []byte, cards []api.CardInfo) (states []Steering, driver string, err error) {
	var whole struct {
		Driver string          `json:"driver"`
		Cards  json.RawMessage `json:"cards"`
	}
	// An object without "cards" is itself the object of cards, a list the list.
	if err := json.Unmarshal(data, &whole); err != nil && whole.Cards == nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			line := 1 + bytes.Count(data[:min(syntax.Offset, int64(len(data)))], []byte("\n"))
			return nil, "", fmt.Errorf("line %d: %w", line, err)
		}
	}
	if whole.Cards != nil {
		data = whole.Cards
	}
	named, err := byName(bytes.TrimSpace(data))
	if err != nil {
		return nil, "", err
	}
	for name, s := range named {
		if s.Utilization < -1 || s.Utilization > 100 {
			return nil, "", fmt.Errorf("card %q: utilization %d is not in 0..100, nor -1 for unknown", name, s.Utilization)
		}
		for _, p := range s.Processes {
			if p.PID <= 0 {
				return nil, "", fmt.Errorf("card %q: %d is not the number of a process", name, p.PID)
			}
			if u := p.Utilization; u != nil && (*u < 0 || *u > 100) {
				return nil, "", fmt.Errorf("card %q: utilization %d of process %d is not in 0..100", name, *u, p.PID)
			}
		}
	}
	out := make([]Steering, len(cards))
	for i := range out {
		out[i] = named["*"]
	}
	delete(named, "*")
	for name, s := range named {
		i := find(cards, name)
		if i < 0 {
			return nil, "", fmt.Errorf("there is no card %q; there are %d, by index from 0 or by UUID", name, len(cards))
		}
		out[i] = s
	}
	return out, whole.Driver, nil
}

func byName(data []byte) (map[string]Steering, error) {
	if len(data) == 0 || data[0] != '[' {
		named := make(map[string]Steering)
		return named, strict(data, &named)
	}
	var list []entry
	if err := strict(data, &list); err != nil {
		return nil, err
	}
	named := make(map[string]Steering, len(list))
	for i, e := range list {
		switch {
		case e.UUID != "":
			named[e.UUID] = e.Steering
		case e.Index != nil:
			named[strconv.Itoa(*e.Index)] = e.Steering
		default: // by its place
			named[strconv.Itoa(i)] = e.Steering
		}
	}
	return named, nil
}

// strict refuses members that mean nothing: a misspelt one would silently do nothing.
func strict(data []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return err
	}
	if d.More() {
		return errors.New("there is something behind the object")
	}
	return nil
}

func find(cards []api.CardInfo, name string) int {
	for i, c := range cards {
		if c.UUID == name || strconv.Itoa(c.Index) == name {
			return i
		}
	}
	return -1
}
