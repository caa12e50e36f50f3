package row

import (
	"encoding/json"
	"fmt"

	"gangd/pkg/api"
)

// Crontab encodes the cron table of a user.
func Crontab(t *api.Crontab) ([]byte, error) { return json.Marshal(t) }

// DecodeCrontab decodes it.
func DecodeCrontab(user string, data []byte) (*api.Crontab, error) {
	t := &api.Crontab{}
	if err := json.Unmarshal(data, t); err != nil {
		return nil, fmt.Errorf("row of the cron table of %s: %w", user, err)
	}
	return t, nil
}
