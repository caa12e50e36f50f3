package conf

import (
	"encoding/json"
	"regexp"
)

// nodeRE is what gangd takes as the name of a node, partitionRE as a partition's.
var (
	nodeRE      = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$`)
	partitionRE = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)
)

// quote writes a TOML string: its escapes are those of JSON.
func quote(s string) string {
	b, _ := json.Marshal(s) // of a string it can't fail
	return string(b)
}
