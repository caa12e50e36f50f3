package session

import (
	"encoding/json"
	"errors"
	"fmt"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline/when"
)

// errFrame is the peer's fault: a message that makes no sense.
var errFrame = errors.New("malformed frame")

// decodeFrame reads one message and checks what the rest of the package relies on. A field
// that it does not know is a newer peer's and no error.
func decodeFrame(data []byte) (*api.Frame, error) {
	f := new(api.Frame)
	if err := json.Unmarshal(data, f); err != nil {
		return nil, fmt.Errorf("%w: %w", errFrame, err)
	}
	if f.Desired != nil {
		if err := checkDesired(f.Desired); err != nil {
			return nil, fmt.Errorf("%w: %w", errFrame, err)
		}
	}
	if f.Hello != nil && f.Hello.Node == "" {
		return nil, fmt.Errorf("%w: hello without a node name", errFrame)
	}
	if f.Welcome != nil && f.Welcome.Settings.Heartbeat <= 0 {
		return nil, fmt.Errorf("%w: welcome with heartbeat %v", errFrame, when.Words(f.Welcome.Settings.Heartbeat))
	}
	return f, nil
}

// checkDesired also writes out what was sent in short.
func checkDesired(d *api.Desired) error {
	for i := range d.Assignments {
		a := &d.Assignments[i]
		if a.Job <= 0 || a.Epoch <= 0 {
			return fmt.Errorf("assignment of job %d epoch %d", a.Job, a.Epoch)
		}
		if a.Body == nil {
			continue
		}
		if err := a.Body.Whole(); err != nil {
			return fmt.Errorf("job %d: %w", a.Job, err)
		}
		for r, p := range a.Body.Ranks {
			if p.Node < 0 || p.Node >= len(a.Body.Nodes) {
				return fmt.Errorf("job %d: rank %d sits on node %d of %d", a.Job, r, p.Node, len(a.Body.Nodes))
			}
		}
	}
	for hash, s := range d.Specs {
		if s == nil {
			return fmt.Errorf("spec %s is empty", hash)
		}
	}
	return nil
}
