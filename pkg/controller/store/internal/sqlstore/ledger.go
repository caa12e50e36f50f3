package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/store/internal/row"
	"gangd/pkg/core/gang"
)

// used writes what members used, and adds to the ledger.
func used(ch *gang.Changes, to Sink) error {
	for i := range ch.Measures {
		m := &ch.Measures[i]
		data, err := row.Measure(m.Measure)
		if err != nil {
			return err
		}
		keys := []int64{m.Job, int64(m.Epoch), int64(m.Member)}
		if err := to.Put(Measure, keys[0], keys[1], keys[2], sealed(data, rowName("measure", keys...))); err != nil {
			return err
		}
	}
	for i := range ch.Ledger {
		l := &ch.Ledger[i]
		values := make([]any, 0, len(Ledger.Columns))
		values = append(values, l.Day, l.User, l.Account, l.Partition, l.CardType, string(l.Cause))
		l.Each(&l.LedgerFigures, func(v, _ *int64) { values = append(values, *v) })
		if err := to.Put(Ledger, append(values, ledgerSum(&l.LedgerFigures))...); err != nil {
			return err
		}
	}
	return nil
}

// ledgerSum is a sum of figures, each with a weight of its own: that of a sum is the sum of theirs, so that
// the database can add to it, and no bit of one figure flips unseen.
func ledgerSum(l *api.LedgerFigures) (sum int64) {
	weight := int64(1)
	l.Each(l, func(v, _ *int64) {
		sum += *v * weight
		weight += 2
	})
	return sum
}

// Measures reads what members of a job used, oldest first.
func (s *Store) Measures(ctx context.Context, job int64) ([]gang.MeasureRow, error) {
	var out []gang.MeasureRow
	err := s.db.Reading(ctx, func(r *Reader) error {
		return r.Each(func(scan func(...any) error) error {
			var epoch, member int64
			var data sql.RawBytes
			if err := scan(&epoch, &member, &data); err != nil {
				return err
			}
			if err := intact(data, rowName("measure", job, epoch, member)); err != nil {
				return err
			}
			m, err := row.DecodeMeasure(job, data)
			out = append(out, gang.MeasureRow{Job: job, Epoch: int(epoch), Member: int(member), Measure: m})
			return err
		}, "SELECT epoch, member, data FROM measure WHERE job = $1 AND job NOT IN (SELECT job FROM gone) ORDER BY epoch, member", job)
	})
	if err != nil {
		return nil, fmt.Errorf("measures of job %d: %w", job, err)
	}
	return out, nil
}

// Ledger sums up the ledger by the words of a query.
func (s *Store) Ledger(ctx context.Context, q *api.LedgerQuery) ([]api.LedgerRow, error) {
	where, args := []string{"true"}, []any{}
	arg := func(text string, v any) {
		args = append(args, v)
		where = append(where, fmt.Sprintf("%s $%d", text, len(args)))
	}
	if q.From != "" {
		arg("day >=", q.From)
	}
	if q.To != "" {
		arg("day <=", q.To)
	}
	for column, values := range map[string][]string{`"user"`: q.Users, "account": q.Accounts, `"partition"`: q.Partitions,
		"card_type": q.CardTypes, "cause": q.Cause} {
		if len(values) == 0 {
			continue
		}
		var marks []string
		for _, v := range values {
			args = append(args, v)
			marks = append(marks, fmt.Sprintf("$%d", len(args)))
		}
		where = append(where, column+" IN ("+strings.Join(marks, ", ")+")")
	}
	sums := map[api.LedgerKey]*api.LedgerFigures{}
	err := s.db.Reading(ctx, func(r *Reader) error {
		return r.ledger(func(l *api.LedgerRow, _ int64) {
			k := l.By(q.By)
			if sums[k] == nil {
				sums[k] = &api.LedgerFigures{}
			}
			sums[k].Add(l.LedgerFigures)
		}, strings.Join(where, " AND "), args...)
	})
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	out := []api.LedgerRow{}
	for _, k := range slices.SortedFunc(maps.Keys(sums), api.LedgerKey.Compare) {
		if *sums[k] != (api.LedgerFigures{}) {
			out = append(out, api.LedgerRow{LedgerKey: k, LedgerFigures: *sums[k]})
		}
	}
	return out, nil
}

// ledger reads rows of it, each with its checksum.
func (r *Reader) ledger(f func(l *api.LedgerRow, sum int64), where string, args ...any) error {
	return r.Each(func(scan func(...any) error) error {
		var l api.LedgerRow
		var sum int64
		to := []any{&l.Day, &l.User, &l.Account, &l.Partition, &l.CardType, &l.Cause}
		l.Each(&l.LedgerFigures, func(v, _ *int64) { to = append(to, v) })
		if err := scan(append(to, &sum)...); err != nil {
			return err
		}
		f(&l, sum)
		return nil
	}, fmt.Sprintf("SELECT %s FROM ledger WHERE %s", Ledger.Names(), where), args...)
}

// ledgerRows looks at each row of the ledger by itself.
func (r *examination) ledgerRows() error {
	return r.ledger(func(l *api.LedgerRow, sum int64) {
		var err error
		if _, bad := time.Parse(time.DateOnly, l.Day); bad != nil {
			err = errors.New("it is of no day")
		} else if want := ledgerSum(&l.LedgerFigures); sum != want {
			err = fmt.Errorf("its figures come to %d, its checksum is %d", want, sum)
		}
		if err != nil {
			r.find("ledger", ledgerName(l.LedgerKey), err,
				`day = $1 AND "user" = $2 AND account = $3 AND "partition" = $4 AND card_type = $5 AND cause = $6`,
				l.Day, l.User, l.Account, l.Partition, l.CardType, string(l.Cause))
		}
	}, "true")
}

func ledgerName(k api.LedgerKey) string {
	return fmt.Sprintf("%s user %s account %q partition %s card type %q cause %q", k.Day, k.User, k.Account, k.Partition, k.CardType, k.Cause)
}

// RecountLedger names where the ledger has less than the attempts that are there come to; as long as no
// job was forgotten, also where it has more.
func RecountLedger(r *Reader, most int) (found []string, err error) {
	sums := map[api.LedgerKey]*api.LedgerFigures{}
	at := func(k api.LedgerKey) *api.LedgerFigures {
		if sums[k] == nil {
			sums[k] = &api.LedgerFigures{}
		}
		return sums[k]
	}
	if err := r.ledger(func(l *api.LedgerRow, _ int64) { at(l.LedgerKey).Add(l.LedgerFigures) }, "true"); err != nil {
		return nil, err
	}
	if err := r.Each(func(scan func(...any) error) error {
		var data sql.RawBytes
		if err := scan(&data); err != nil {
			return err
		}
		b, err := row.EpochBooking(data)
		for _, l := range gang.Booked(b) {
			at(l.LedgerKey).Sub(l.LedgerFigures)
		}
		return err
	}, "SELECT data FROM epoch"); err != nil {
		return nil, err
	}
	var whole bool // all jobs that there ever were are here
	if err := r.One("SELECT (SELECT count(*) FROM job) = (SELECT next_id - 1 FROM meta)", nil, &whole); err != nil {
		return nil, err
	}
	for _, k := range slices.SortedFunc(maps.Keys(sums), api.LedgerKey.Compare) {
		less, more := false, false
		sums[k].Each(sums[k], func(v, _ *int64) { less, more = less || *v < 0, more || *v > 0 })
		if (less || more && whole) && len(found) < most {
			found = append(found, fmt.Sprintf("ledger %s: it differs from the attempts that are here by %+v", ledgerName(k), *sums[k]))
		}
	}
	return found, nil
}
