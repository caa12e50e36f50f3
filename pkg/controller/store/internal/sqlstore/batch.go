package sqlstore

import (
	"fmt"
	"strconv"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
	"gangd/pkg/controller/store/internal/row"
	"gangd/pkg/core/gang"
)

// Sink takes the rows of a batch, in their order. Values are int64, string or nil, as many as the table has
// columns; they are the caller's again when it returns.
type Sink interface {
	Put(t *Table, values ...any) error
	// Drop takes the row with a key away, if there is one.
	Drop(t *Table, key any) error
	// DropSpec takes a spec away that no job has once all rows are put.
	DropSpec(hash string) error
}

// maxSpecs bounds the hashes remembered as stored: 4,096 of 64 letters are half a
// megabyte, and forgetting one costs an insert that does nothing.
const maxSpecs = 4096

// Specs are hashes known to be stored.
type Specs map[string]struct{}

// Batch makes the rows of a batch. nextID is the smallest id that no commit before has covered:
// the specs of jobs below it are stored.
func Batch(ch *gang.Changes, nextID int64, known Specs, to Sink) error {
	for _, id := range ch.Revived {
		// A live row over another leaves its end alone.
		if err := to.Drop(Job, id); err != nil {
			return err
		}
	}
	for _, j := range ch.Jobs {
		if ch.Specs[j.SpecHash] != nil && j.ID < nextID {
			// It asks for something else now. A row put over another may leave its spec alone: see sqlitestore.
			if err := to.Drop(Job, j.ID); err != nil {
				return err
			}
		}
		if err := job(ch, j, nextID, known, to); err != nil {
			return err
		}
	}
	for _, hash := range ch.LeftSpecs {
		delete(known, hash)
		if err := to.DropSpec(hash); err != nil {
			return err
		}
	}
	if err := ranks(ch, to); err != nil {
		return err
	}
	for i := range ch.Epochs {
		e := &ch.Epochs[i]
		data, err := row.Epoch(e)
		if err != nil {
			return err
		}
		if err := to.Put(Epoch, e.Job, int64(e.Epoch), sealed(data, rowName("epoch", e.Job, int64(e.Epoch)))); err != nil {
			return err
		}
	}
	for i := range ch.Steps {
		if err := step(&ch.Steps[i], to); err != nil {
			return err
		}
	}
	if err := used(ch, to); err != nil {
		return err
	}
	if err := nodes(ch, to); err != nil {
		return err
	}
	if err := letters(ch, to); err != nil {
		return err
	}
	if ch.Claims != nil {
		if err := to.Put(Claims, int64(1), sealedClaims(ch.Claims)); err != nil {
			return err
		}
	}
	for i := range ch.Events {
		e := &ch.Events[i]
		data, err := row.Event(e)
		if err != nil {
			return err
		}
		if err := to.Put(Event, e.Seq, e.JobID, sealed(data, rowName("event", e.Seq))); err != nil {
			return err
		}
	}
	return nil
}

// nodes writes what is known by name: nodes, reservations, changes of partitions, cron tables.
func nodes(ch *gang.Changes, to Sink) error {
	for _, name := range ch.Forgot {
		if err := to.Drop(Node, name); err != nil {
			return err
		}
	}
	for _, n := range ch.Nodes {
		data, err := row.Node(n)
		if err != nil {
			return err
		}
		if err := to.Put(Node, n.Name, sealed(data, "node "+n.Name)); err != nil {
			return err
		}
	}
	for _, r := range ch.Reservations {
		if r.R == nil {
			if err := to.Drop(Reservation, r.Name); err != nil {
				return err
			}
			continue
		}
		data, err := row.Reservation(r.R)
		if err != nil {
			return err
		}
		if err := to.Put(Reservation, r.Name, sealed(data, "reservation "+r.Name)); err != nil {
			return err
		}
	}
	for _, r := range ch.Partitions {
		if r.C == nil {
			if err := to.Drop(Partition, r.Name); err != nil {
				return err
			}
			continue
		}
		data, err := row.Partition(r.C)
		if err != nil {
			return err
		}
		if err := to.Put(Partition, r.Name, sealed(data, "partition "+r.Name)); err != nil {
			return err
		}
	}
	for _, r := range ch.Crontabs {
		if r.T == nil {
			if err := to.Drop(Crontab, r.User); err != nil {
				return err
			}
			continue
		}
		data, err := row.Crontab(r.T)
		if err != nil {
			return err
		}
		if err := to.Put(Crontab, r.User, sealed(data, "crontab "+r.User)); err != nil {
			return err
		}
	}
	return nil
}

func job(ch *gang.Changes, j *gang.Job, nextID int64, known Specs, to Sink) error {
	if err := spec(ch, j, nextID, known, to); err != nil {
		return err
	}
	data, err := row.Job(j)
	if err != nil {
		return err
	}
	var end any
	if at, over := store.EndOf(j); over {
		end = nanos(at)
	}
	return to.Put(Job, j.ID, j.ArrayID, j.User, j.SpecHash, nanos(j.Submit), sealed(data, jobName(j.ID, j.SpecHash)), end)
}

// spec stores the spec of a new job, or of one that asks for something else now; that of another is there since its first commit.
func spec(ch *gang.Changes, j *gang.Job, nextID int64, known Specs, to Sink) error {
	whole := ch.Specs[j.SpecHash]
	if _, ok := known[j.SpecHash]; ok || j.ID < nextID && whole == nil {
		return nil
	}
	if whole == nil {
		return fmt.Errorf("job %d is new, and its spec %s is not in the batch", j.ID, j.SpecHash)
	}
	data, err := row.Spec(whole)
	if err != nil {
		return err
	}
	if err := to.Put(Spec, j.SpecHash, sealed(data, "spec "+j.SpecHash)); err != nil {
		return err
	}
	if len(known) >= maxSpecs {
		clear(known)
	}
	known[j.SpecHash] = struct{}{}
	return nil
}

// ranks writes the changed ranks. One that is blank needs no row: it is deleted where it
// may have one, which is never before the first admission of its gang.
func ranks(ch *gang.Changes, to Sink) error {
	fresh := make(map[int64]bool, len(ch.Jobs))
	for _, j := range ch.Jobs {
		fresh[j.ID] = j.Epoch == 0
	}
	for i := range ch.Ranks {
		r := &ch.Ranks[i]
		id := rankID(r.Job, r.Index)
		if row.Blank(&r.Rank) {
			if fresh[r.Job] {
				continue
			}
			if err := to.Drop(Rank, id); err != nil {
				return err
			}
			continue
		}
		data, err := row.Rank(&r.Rank)
		if err != nil {
			return err
		}
		if err := to.Put(Rank, id, sealed(data, rowName("rank", id))); err != nil {
			return err
		}
	}
	return nil
}

func step(st *api.Step, to Sink) error {
	number, err := strconv.ParseInt(st.StepID, 10, 64)
	if err != nil {
		return fmt.Errorf("step %q of job %d has no number", st.StepID, st.JobID)
	}
	data, err := row.Step(st)
	if err != nil {
		return err
	}
	return to.Put(Step, st.JobID, int64(st.Epoch), number, sealed(data, rowName("step", st.JobID, int64(st.Epoch), number)))
}

// NewJobs: ids are given out in order, so a job is new when no commit has covered its id.
func NewJobs(ch *gang.Changes, nextID int64) bool {
	for _, j := range ch.Jobs {
		if j.ID >= nextID {
			return true
		}
	}
	return false
}

// rankBits: api.MaxGangSize ranks fit.
const rankBits = 16

func rankID(job int64, index int) int64 { return job<<rankBits | int64(index) }
