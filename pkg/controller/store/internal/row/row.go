// Package row is how a store writes things down: JSON by the tags of their types, in which no name of a field of Go is, and
// what only a store needs. A round trip changes the monotonic reading and the location pointer of a time, nothing else.
//
// Invariant: every field of the gang types is carried, but a job's Spec (with TextBytes) and Ranks, which have rows of their
// own, Hopeless, which is judged anew, and the keys by which rows are found; a test fills every field by reflection and compares.
//
// Failure rules: a row that can't be read names the row; nothing is guessed.
//
// Begin with Job and DecodeJob; the checks before a write are in check.go. It must not know SQL or a
// database.
package row

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unique"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
)

// elsewhere stands in place of a field that is not in a row: the row is found by it, it has a row of its own, or it is judged anew.
type elsewhere struct{}

// job is the header of a job.
type job struct {
	*gang.Job
	Size int `json:"size"` // ranks; those without a row are blocked

	ID        *elsewhere `json:"id,omitempty"`
	Spec      *elsewhere `json:"spec,omitempty"`
	SpecHash  *elsewhere `json:"spec_hash,omitempty"`
	TextBytes *elsewhere `json:"text_bytes,omitempty"`
	Hopeless  *elsewhere `json:"hopeless,omitempty"`
	Ranks     *elsewhere `json:"ranks,omitempty"`
}

// Job encodes the header of a job: all but ID, SpecHash, Spec, TextBytes, Hopeless and Ranks.
func Job(j *gang.Job) ([]byte, error) { return json.Marshal(&job{Job: j, Size: len(j.Ranks)}) }

// JobKey is the key in a header, of which nothing else is decoded: it stands before the name, and what is before it has none.
func JobKey(data []byte) (key string) {
	before, _, _ := bytes.Cut(data, []byte(`,"name":`))
	if _, text, has := bytes.Cut(before, []byte(`,"key":`)); has {
		_ = json.Unmarshal(text, &key) // what can't be read is none
	}
	return key
}

// DecodeJob decodes a header. Its ranks are all blocked and shared with others, for the
// caller to own and overwrite with those that have a row; Spec is the caller's too.
func DecodeJob(id int64, specHash string, data []byte) (*gang.Job, error) {
	j := &gang.Job{Wishes: new(gang.Wishes), Past: new(gang.Past)}
	r := job{Job: j}
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("row of job %d: %w", id, err)
	}
	if r.Size > api.MaxGangSize {
		return nil, fmt.Errorf("row of job %d: size %d: want at most %d", id, r.Size, api.MaxGangSize)
	}
	j.ID, j.SpecHash, j.Ranks = id, specHash, gang.BlankRanks(r.Size)
	j.User, j.Partition = unique.Make(j.User).Value(), unique.Make(j.Partition).Value()
	j.Share()
	return j, nil
}
