package row

import (
	"encoding/json"
	"fmt"

	"gangd/pkg/api"
)

// Partition encodes what was made of a partition at run time.
func Partition(c *api.PartitionChange) ([]byte, error) { return json.Marshal(c) }

// DecodePartition decodes it.
func DecodePartition(name string, data []byte) (*api.PartitionChange, error) {
	c := &api.PartitionChange{}
	if err := json.Unmarshal(data, c); err != nil {
		return nil, fmt.Errorf("row of partition %s: %w", name, err)
	}
	return c, nil
}
