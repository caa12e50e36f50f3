package row

import (
	"encoding/json"
	"fmt"

	"gangd/pkg/api"
)

// Letter encodes a letter of the outbox.
func Letter(l *api.Letter) ([]byte, error) { return json.Marshal(l) }

// DecodeLetter decodes it.
func DecodeLetter(id int64, data []byte) (*api.Letter, error) {
	l := &api.Letter{}
	if err := json.Unmarshal(data, l); err != nil {
		return nil, fmt.Errorf("row of letter %d: %w", id, err)
	}
	return l, nil
}
