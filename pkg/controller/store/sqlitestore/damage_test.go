package sqlitestore

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/store/storetest"
	"gangd/pkg/core/gang"
)

var places = flag.Int("damage.places", 16, "random places of a store that are damaged, each alone")

// told is all that a store says, and its commit.
func told(s *Store) (said string, lineage uint64, err error) {
	ctx := context.Background()
	saved, err := s.Load(ctx, time.Time{})
	if err != nil {
		return "", 0, err
	}
	events, err := s.Events(ctx, 0, 0, 0)
	if err != nil {
		return "", 0, err
	}
	all := []any{saved.NextID, saved.NextSeq, saved.Claims, saved.Jobs, saved.Nodes, saved.Reservations, saved.Keys, events}
	for job := range int64(3) {
		e, err := s.Epochs(ctx, job+1)
		if err != nil {
			return "", 0, err
		}
		st, err := s.Steps(ctx, job+1)
		if err != nil {
			return "", 0, err
		}
		all = append(all, e, st)
	}
	b, err := json.Marshal(all)
	return string(b), s.Lineage(), err
}

// TestDamage damages a store with its log at random places, one at a time: it is refused by name, or says
// what it said, or is of an older commit, which nodes have seen more than and put on HOLD, or `gangd verify`
// names what is wrong.
func TestDamage(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	storeOfThree(t, dir).Close() // into the file
	s := openDir(t, dir)         // and these into the log
	for n := range 4 {
		ch := storetest.Submitted(storetest.NewJob(int64(4+n), 1))
		ch.Events, ch.NextSeq = []api.Event{{Seq: int64(4 + n), JobID: int64(4 + n), Type: api.EventSubmitted}}, int64(5+n)
		ch.Nodes = []*gang.Node{{Name: "n2", State: api.NodeUp, Reason: fmt.Sprint(n)}}
		if _, err := s.Commit(ctx, ch); err != nil {
			t.Fatal(err)
		}
	}
	want, lineage, err := told(s)
	if err != nil {
		t.Fatal(err)
	}
	whole := map[string][]byte{}
	for _, name := range []string{DatabaseName, DatabaseName + "-wal"} {
		if whole[name], err = os.ReadFile(filepath.Join(dir, name)); err != nil || len(whole[name]) == 0 {
			t.Fatal(name, err)
		}
	}
	s.Close()
	shut, err := os.ReadFile(filepath.Join(dir, DatabaseName)) // all of it in the file, which has no checksums of its own
	if err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	seen := map[string]int{}
	for n := range *places {
		dir, what := t.TempDir(), ""
		files, hit := whole, []string{DatabaseName, DatabaseName + "-wal"}[r.IntN(2)]
		if r.IntN(2) == 0 {
			files, hit = map[string][]byte{DatabaseName: shut}, DatabaseName
		}
		for name, text := range files {
			if name == hit {
				if text, what = hurt(r, text); text == nil {
					continue
				}
			}
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		how := outcome(dir, want, lineage)
		if seen[how]++; how == "" {
			t.Errorf("place %d of seed %d: %s: %s: it is not as it was, and nothing says so", n, seed, hit, what)
		}
	}
	t.Log(seen)
}

// hurt is a text that was cut, of which a bit or a page is wrong, or nil: it is gone.
func hurt(r *rand.Rand, text []byte) ([]byte, string) {
	text = bytes.Clone(text)
	n := r.IntN(len(text))
	switch r.IntN(10) {
	case 0:
		return nil, "removed"
	case 1:
		return text[:n], fmt.Sprintf("cut to %d", n)
	case 2:
		page := n / 4096 * 4096
		clear(text[page:min(page+4096, len(text))])
		return text, fmt.Sprintf("page at %d cleared", page)
	case 3: // the counters: the first table's page is the second
		n = min(2*4096, len(text)) - 1 - r.IntN(16)
	case 4: // the rows of small tables are at the ends of their pages
		n = min(n/4096*4096+4096, len(text)) - 1 - r.IntN(64)
	}
	for text[n] == 0 { // most of it is room
		n = (n + 1) % len(text)
	}
	bit := r.IntN(8)
	text[n] ^= 1 << bit
	return text, fmt.Sprintf("bit %d of byte %d", bit, n)
}

func outcome(dir, want string, lineage uint64) string {
	ctx := context.Background()
	s, err := Open(ctx, dir, Options{NewJobFloor: 1})
	if err != nil {
		return "not opened"
	}
	defer s.Close()
	said, now, err := told(s)
	switch {
	case err != nil:
		return "not loaded"
	case now < lineage:
		return "an older commit"
	case said == want:
		return "as it was"
	}
	if found, err := s.Verify(ctx); err != nil || len(found) > 0 {
		return "named by verify"
	}
	return ""
}
