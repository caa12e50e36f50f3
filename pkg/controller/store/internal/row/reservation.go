package row

import (
	"encoding/json"
	"fmt"

	"gangd/pkg/api"
)

// Reservation encodes a reservation. Whether it goes on is for a clock to say.
func Reservation(r *api.Reservation) ([]byte, error) {
	c := *r
	c.Active = false
	return json.Marshal(&c)
}

// DecodeReservation decodes one.
func DecodeReservation(name string, data []byte) (*api.Reservation, error) {
	r := &api.Reservation{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("row of reservation %s: %w", name, err)
	}
	return r, nil
}
