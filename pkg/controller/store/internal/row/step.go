package row

import (
	"encoding/json"
	"fmt"

	"gangd/pkg/api"
)

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
