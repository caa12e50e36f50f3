package sqlitestore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/store/storetest"
	"gangd/pkg/core/gang"
)

// storeOfThree has jobs 1 to 3 with rows of every kind.
func storeOfThree(t *testing.T, dir string) *Store {
	t.Helper()
	s := openDir(t, dir)
	var jobs []*gang.Job
	for id := range int64(3) {
		j := storetest.NewJob(id+1, 2)
		spec := *j.Spec
		spec.Name, j.SpecHash, j.Spec = fmt.Sprint("spec", id+1), fmt.Sprint("hash", id+1), &spec
		jobs = append(jobs, j)
	}
	if _, err := s.Commit(context.Background(), storetest.Submitted(jobs...)); err != nil {
		t.Fatal(err)
	}
	ch := &gang.Changes{NextID: 4, NextSeq: 4, Claims: []byte(`{"a":1}`), Nodes: []*gang.Node{{Name: "n1", State: api.NodeUp}, {Name: "n2", State: api.NodeUp}}, Letters: []gang.LetterRow{{ID: 16, Letter: &api.Letter{ID: 16, User: "ada"}}}, SiteChanges: gang.SiteChanges{Reservations: []gang.ReservationRow{{Name: "r1", R: &api.Reservation{Name: "r1"}}}}}
	for _, j := range jobs {
		c := j.Copy()
		c.Epoch = 1
		ch.Jobs = append(ch.Jobs, c)
		for i := range 2 {
			ch.Ranks = append(ch.Ranks, gang.RankRow{Job: j.ID, Index: i, Rank: gang.Rank{State: api.RankReserved, PID: 7}})
		}
		ch.Epochs = append(ch.Epochs, gang.EpochRow{Job: j.ID, Epoch: 1})
		ch.Steps = append(ch.Steps, api.Step{JobID: j.ID, Epoch: 1, StepID: "0"})
		ch.Events = append(ch.Events, api.Event{Seq: j.ID, JobID: j.ID, Type: api.EventSubmitted})
	}
	if _, err := s.Commit(context.Background(), ch); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestRepair: each kind of impossible row is named and set aside with what can't be without it, nothing
// else is, and the store loads.
func TestRepair(t *testing.T) {
	for name, c := range map[string]struct {
		sql  string
		want string // a line of what is said
		jobs string // that are left
	}{
		"job no JSON":          {"UPDATE job SET data = '{' WHERE id = 2", "job 2: unexpected end of JSON input", "[1 3]"},
		"job size":             {"UPDATE job SET data = json_remove(json_set(data, '$.size', 70000), '$.sum') WHERE id = 2", "job 2: size 70000: want 1 to 65536", "[1 3]"},
		"job huge size":        {"UPDATE job SET data = json_remove(json_set(data, '$.size', 1099511627776), '$.sum') WHERE id = 2", "job 2: size 1099511627776: want 1 to 65536", "[1 3]"},
		"flipped":              {"UPDATE job SET data = replace(data, 'train', 'trail') WHERE id = 2", "", "[1 3]"},
		"another's":            {"UPDATE rank SET data = (SELECT data FROM rank WHERE id = 1 << 16) WHERE id = 2 << 16", "", "[1 3]"},
		"job id":               {"UPDATE job SET id = 1 << 50 WHERE id = 2", "job 1125899906842624: its id is out of range", "[1 3]"},
		"job id at most":       {"UPDATE job SET id = (1 << 46) + 1 WHERE id = 2", "job 70368744177665: its id is out of range", "[1 3]"},
		"job id below":         {"UPDATE job SET id = -2 WHERE id = 2", "job -2: its id is out of range", "[1 3]"},
		"duration":             {"UPDATE job SET data = json_remove(json_set(data, '$.time_limit', 9223372036854775807), '$.sum') WHERE id = 2", "job 2: .TimeLimit: 2562047h47m16.854775807s", "[1 3]"},
		"time limit":           {"UPDATE job SET data = json_remove(json_set(data, '$.time_limit', -5), '$.sum') WHERE id = 2", "job 2: time_limit -5 ns", "[1 3]"},
		"priority":             {"UPDATE job SET data = json_remove(json_set(data, '$.priority', -9223372036854775807), '$.sum') WHERE id = 2", "job 2: .Priority: -9223372036854775807", "[1 3]"},
		"time":                 {"UPDATE job SET data = json_remove(json_set(data, '$.submit', '0999-01-01T00:00:00Z'), '$.sum') WHERE id = 2", "job 2: .Submit: 0999-01-01 00:00:00 +0000 UTC", "[1 3]"},
		"verdict":              {"UPDATE job SET ended = 7 WHERE id = 2", "job 2: it has an end and no verdict, or a verdict and no end", "[1 3]"},
		"spec gone":            {"DELETE FROM spec WHERE hash = 'hash2'", "job 2: its spec is missing", "[1 3]"},
		"spec no JSON":         {"UPDATE spec SET data = '[' WHERE hash = 'hash2'", "spec hash2: unexpected end of JSON input", "[1 3]"},
		"rank no JSON":         {"UPDATE rank SET data = 'x' WHERE id = (2 << 16) + 1", "job 2: the row of its rank 1 can't be read: invalid character 'x' looking for beginning of value", "[1 3]"},
		"rank beyond":          {"INSERT INTO rank VALUES ((2 << 16) + 2, '{}')", "rank 2 of job 2: its job has 2 ranks", "[1 2 3]"},
		"rank without job":     {"INSERT INTO rank VALUES ((9 << 16) + 2, '{}')", "rank 2 of job 9: there is no such job", "[1 2 3]"},
		"rank overflowed":      {"INSERT INTO rank VALUES (-5, '{}')", "rank 65531 of job -1: there is no such job", "[1 2 3]"},
		"job row gone":         {"DELETE FROM job WHERE id = 2", "epoch 1 of job 2: there is no such job", "[1 3]"},
		"epoch no JSON":        {"UPDATE epoch SET data = '' WHERE job = 2", "epoch 1 of job 2: unexpected end of JSON input", "[1 2 3]"},
		"epoch to come":        {"UPDATE epoch SET epoch = 5, data = json_remove(data, '$.sum') WHERE job = 2", "epoch 5 of job 2: its job is at epoch 1", "[1 2 3]"},
		"step no JSON":         {"UPDATE step SET data = '' WHERE job = 2", "step 0 of job 2 epoch 1: unexpected end of JSON input", "[1 2 3]"},
		"node no JSON":         {"UPDATE node SET data = '{\"hello\":3}' WHERE name = 'n2'", "node n2: json: cannot unmarshal number into Go struct field node.Node.hello of type api.Hello", "[1 2 3]"},
		"node number":          {"UPDATE node SET data = json_remove(json_set(data, '$.hello.memory_bytes', 9223372036854775807), '$.sum') WHERE name = 'n2'", "node n2: .Hello.MemoryBytes: 9223372036854775807", "[1 2 3]"},
		"event no JSON":        {"UPDATE event SET data = '' WHERE seq = 2", "event 2: unexpected end of JSON input", "[1 2 3]"},
		"event number":         {"UPDATE event SET seq = 1 << 60, data = json_remove(data, '$.sum') WHERE seq = 2", "event 1152921504606846976: its number is out of range", "[1 2 3]"},
		"event number at most": {"UPDATE event SET seq = (1 << 46) + 1, data = json_remove(data, '$.sum') WHERE seq = 2", "event 70368744177665: its number is out of range", "[1 2 3]"},
		"event number below":   {"UPDATE event SET seq = 0, data = json_remove(data, '$.sum') WHERE seq = 2", "event 0: its number is out of range", "[1 2 3]"},
		"job id far beyond":    {"UPDATE job SET id = (1 << 48) + 1 WHERE id = 3", "job 281474976710657: its id is out of range", "[1 2]"},
		"job id nought":        {"UPDATE job SET id = 0 WHERE id = 2", "job 0: its id is out of range", "[1 3]"},
		"lineage at most":      {"UPDATE meta SET lineage = (1 << 62) + 1", "meta lineage: 4611686018427387905 is impossible: 1 is put in its place", "[1 2 3]"},
		"next id at most":      {"UPDATE meta SET next_id = (1 << 46) + 1", "meta next_id: 70368744177665 is impossible: 4 is put in its place", "[1 2 3]"},
		"next event at most":   {"UPDATE meta SET next_seq = (1 << 46) + 1", "meta next_seq: 70368744177665 is impossible: 4 is put in its place", "[1 2 3]"},
		"reservation":          {"UPDATE reservation SET data = ''", "reservation r1: unexpected end of JSON input", "[1 2 3]"},
		"claims":               {"UPDATE claims SET data = '{'", "claims 1: row claims: it is no list", "[1 2 3]"},
		"claims damaged":       {`UPDATE claims SET data = replace(data, '"a"', '"b"')`, "", "[1 2 3]"},
		"claims no JSON":       {"UPDATE claims SET data = '[1'", "claims 1: it is no JSON", "[1 2 3]"},
		"letter":               {"UPDATE letter SET data = '{'", "letter 16: unexpected end of JSON input", "[1 2 3]"},
		"ledger day":           {"INSERT INTO ledger VALUES ('2026-13-01', 'ada', 'vision', 'gpu', '', '', 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0)", `ledger 2026-13-01 user ada account "vision" partition gpu card type "" cause "": it is of no day`, "[1 2 3]"},
		"ledger figure":        {"INSERT INTO ledger VALUES ('2026-01-02', 'ada', 'vision', 'gpu', '', '', 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0)", `ledger 2026-01-02 user ada account "vision" partition gpu card type "" cause "": its figures come to 4, its checksum is 5`, "[1 2 3]"},
		"job and its spec":     {"UPDATE spec SET data = '[' WHERE hash = 'hash2'; UPDATE job SET data = '{' WHERE id = 2", "job 2: its spec hash2 can't be read", "[1 3]"},
		"job id overflowed":    {"UPDATE job SET id = 2 - (1 << 48) WHERE id = 3", "job -281474976710654: its id is out of range", "[1 2]"},
		"release":              {"INSERT INTO release (job, epoch, step, name, keys) VALUES (1, 1, -1, 'a', '{')", "release 1: its keys are no JSON", "[1 2 3]"},
		"forgotten":            {"INSERT INTO gone VALUES (2)", "gone 2: it was forgotten and is there", "[1 2 3]"},
		"next id":              {"UPDATE meta SET next_id = 1 << 60", "meta next_id: 1152921504606846976 is impossible: 4 is put in its place", "[1 2 3]"},
		"next id behind":       {"UPDATE meta SET next_id = 2", "meta next_id: 2 is impossible: 4 is put in its place", "[1 2 3]"},
		"next event behind":    {"UPDATE meta SET next_seq = 0", "meta next_seq: 0 is impossible: 4 is put in its place", "[1 2 3]"},
		"lineage":              {"UPDATE meta SET lineage = -1", "meta lineage: -1 is impossible: 1 is put in its place", "[1 2 3]"},
		"counters damaged":     {"UPDATE meta SET next_seq = next_seq + 64", "meta 1: its checksum is that of other counters: ids go on behind 3, events behind 67", "[1 2 3]"},
		"counters gone":        {"DELETE FROM meta", "meta 1: it is missing: ids go on behind those of the jobs that are here; nodes that have seen more commits put gangd on HOLD", "[1 2 3]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, dir := context.Background(), t.TempDir()
			s := storeOfThree(t, dir)
			if found, err := s.Verify(ctx); err != nil || len(found) > 0 {
				t.Fatal(found, err)
			}
			if err := s.w.exec(c.sql); err != nil {
				t.Fatal(err)
			}
			s.Close()
			now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			seen, aside, err := Repair(ctx, dir, false, now)
			if err != nil || aside != "" || len(seen) == 0 {
				t.Fatalf("%v, %q, %v", seen, aside, err)
			}
			found, aside, err := Repair(ctx, dir, true, now)
			if err != nil || aside != filepath.Join(dir, "set-aside-20260102T030405.000.jsonl") || len(found) != len(seen) {
				t.Fatalf("%v, %q, %v", found, aside, err)
			}
			var said []string
			named := false
			for i := range found {
				if slices.ContainsFunc(found[:i], func(f Finding) bool { return f.Table == found[i].Table && f.Row == found[i].Row }) {
					t.Errorf("twice: %s", found[i].String())
				}
				said = append(said, found[i].String())
				named = named || found[i].String() == c.want || c.want == "" && strings.Contains(found[i].Why, "damaged: its checksum is ")
			}
			if !named {
				t.Errorf("said\n%s\nwant\n%s", strings.Join(said, "\n"), c.want)
			}
			lines, err := os.ReadFile(aside)
			if err != nil || bytes.Count(lines, []byte("\n")) != len(found) {
				t.Errorf("%v:\n%s", err, lines)
			}
			for line := range bytes.Lines(lines) {
				var x Finding
				if err := json.Unmarshal(line, &x); err != nil || x.Content == nil && x.Row != "1" {
					t.Errorf("%s: %v", line, err)
				}
			}
			s = openDir(t, dir)
			saved, err := s.Load(ctx, time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			var left []int64
			for _, j := range saved.Jobs {
				left = append(left, j.ID)
			}
			if fmt.Sprint(left) != c.jobs || saved.NextID != 4 || saved.NextSeq < 3 {
				t.Errorf("left are %v, next %d %d, want %s", left, saved.NextID, saved.NextSeq, c.jobs)
			}
			if n, err := s.w.Ints("SELECT count(*) FROM rank", 1); err != nil || n[0] != 2*int64(len(left)) {
				t.Errorf("left are the rows of %d ranks, %v", n, err)
			}
			if found, err := s.Verify(ctx); err != nil || len(found) > 0 {
				t.Errorf("after it: %q, %v", found, err)
			}
			s.Close()
			if found, _, err := Repair(ctx, dir, true, now.Add(time.Second)); err != nil || len(found) > 0 {
				t.Errorf("again: %v, %v", found, err)
			}
		})
	}
}

// TestRepairOfWhatIsWhole changes nothing, and a store in use is refused.
func TestRepairOfWhatIsWhole(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	if _, _, err := Repair(ctx, dir, true, time.Now()); err == nil || !strings.HasSuffix(err.Error(), "state.db: there is no store") {
		t.Errorf("%v", err)
	}
	s := storeOfThree(t, dir)
	if _, _, err := Repair(ctx, dir, true, time.Now()); err == nil || !strings.Contains(err.Error(), "is in use by process") {
		t.Errorf("%v", err)
	}
	s.Close()
	if found, aside, err := Repair(ctx, dir, true, time.Now()); err != nil || len(found) > 0 || aside != "" {
		t.Errorf("%v, %q, %v", found, aside, err)
	}
}

// TestNothingIsRemovedUnsaved: where the rows can't be set aside they stay.
func TestNothingIsRemovedUnsaved(t *testing.T) {
	ctx, dir, now := context.Background(), t.TempDir(), time.Now()
	s := storeOfThree(t, dir)
	if err := s.w.exec("UPDATE job SET data = '{' WHERE id = 2"); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if err := os.WriteFile(filepath.Join(dir, now.UTC().Format(asideFile)), []byte("there"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Repair(ctx, dir, true, now); !errors.Is(err, os.ErrExist) {
		t.Errorf("over a file that is there: %v", err)
	}
	if found, _, err := Repair(ctx, dir, false, now); err != nil || len(found) == 0 {
		t.Errorf("left: %v, %v", found, err)
	}
}

// TestMalformedIsLeftAlone: below its rows a store is not repaired and not written.
func TestMalformedIsLeftAlone(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	storeOfThree(t, dir).Close()
	path := filepath.Join(dir, DatabaseName)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string]func(b []byte) []byte{
		"first page":  func(b []byte) []byte { clear(b[:100]); return b },
		"cut":         func(b []byte) []byte { return b[:len(b)/2] },
		"another one": func(b []byte) []byte { clear(b[2*4096 : 3*4096]); return b },
	} {
		b := damage(bytes.Clone(whole))
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		_, aside, err := Repair(ctx, dir, true, time.Now())
		if !errors.Is(err, errMalformed) || aside != "" || !strings.Contains(err.Error(), "put a backup there") {
			t.Errorf("%s: %q, %v", name, aside, err)
		}
		if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, b) {
			t.Errorf("%s: it was written, %v", name, err)
		}
	}
}
