package engine

import (
	"bytes"
	"encoding/json"
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/lab/disk"
)

// FuzzNodeFrames: what a node says, of gangs that it has and of others, leaves a state that
// is sound, and ends no controller. A node can lie only about what is placed on it.
func FuzzNodeFrames(f *testing.F) {
	for _, s := range []string{
		`{"actual":{"members":[{"job":1,"epoch":1,"phase":"ready","port":20000}]}}`,
		`{"actual":{"members":[{"job":1,"epoch":1,"phase":"ready"},{"job":1,"epoch":1,"phase":"running","ranks":[{"rank":0,"pid":7},{"rank":1,"pid":8,"exited":true,"exit_code":3}]}]}}`,
		`{"actual":{"members":[{"job":1,"epoch":2,"phase":"running"},{"job":9,"epoch":1,"phase":"stuck","survivors":[{"pid":1}]}],"gone":[{"job":1,"epoch":1}]}}`,
		`{"actual":{"members":[{"job":1,"epoch":1,"phase":"refused","refusal":{"text":"no","job":true}}]}}`,
		`{"actual":{"members":[{"job":1,"epoch":1,"phase":"ready"},{"job":1,"epoch":1,"phase":"stopped","stopping":"timeout","forced":true,"ranks":[{"rank":-1,"exited":true},{"rank":9,"exited":true}]}]}}`,
		`{"hello":{"protocol":1,"node":"n1","boot_id":"c","cpus":-4,"memory_bytes":-1,"cards":[{"index":0,"uuid":"c0","vram_bytes":-5},{"index":0,"uuid":"c0"}],"members":[{"job":1,"epoch":1,"phase":"lost"}]}}`,
		`{"hello":{"protocol":1,"node":"n1","boot_id":"b","lineage_seen":99999}}`,
		`{"notes":[{"job":1,"epoch":1,"ranks":[{"rank":5,"status":"x"}]}],"samples":[{"uuid":"c0","used_bytes":-1}]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := newRig(t, disk.Open(t))
		defer r.end()
		r.node("n1", 4)
		r.node("n2", 1)
		r.submit("k", spec(5)) // on both
		r.submit("l", spec(1)) // waits
		d := json.NewDecoder(bytes.NewReader(data))
		for range 8 {
			var frame api.Frame
			if d.Decode(&frame) != nil {
				break
			}
			if h := frame.Hello; h != nil {
				h.Node = "n1" // the session's, by its certificate
				_, _ = r.NodeHello(t.Context(), h)
			}
			if frame.Actual != nil {
				r.NodeReport("n1", frame.Actual)
			}
			if len(frame.Samples) > 0 {
				r.NodeSample("n1", frame.Samples)
			}
			for i := range frame.Notes {
				r.NodeNotes("n1", frame.Notes[i:i+1])
			}
			if found, err := r.Verify(t.Context()); err != nil || len(found) > 0 {
				t.Fatalf("%s leaves %v, %v", data, found, err)
			}
		}
	})
}
