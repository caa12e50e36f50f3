package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"gangd/pkg/api"
	"gangd/pkg/controller/store/internal/row"
	"gangd/pkg/core/gang"
)

// letters writes those that changed.
func letters(ch *gang.Changes, to Sink) error {
	for i := range ch.Letters {
		l := &ch.Letters[i]
		if l.Letter == nil {
			if err := to.Drop(Letter, l.ID); err != nil {
				return err
			}
			continue
		}
		data, err := row.Letter(l.Letter)
		if err != nil {
			return err
		}
		if err := to.Put(Letter, l.ID, sealed(data, rowName("letter", l.ID))); err != nil {
			return err
		}
	}
	return nil
}

// Letters reads the outbox by id.
func (s *Store) Letters(ctx context.Context) (out []*api.Letter, err error) {
	err = s.db.Reading(ctx, func(r *Reader) error {
		out, err = r.Letters()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("outbox: %w", err)
	}
	return out, nil
}

// Letters is [Store.Letters] within a transaction.
func (r *Reader) Letters() (out []*api.Letter, err error) {
	err = r.Each(func(scan func(...any) error) error {
		var id int64
		var data sql.RawBytes
		if err := scan(&id, &data); err != nil {
			return err
		}
		if err := intact(data, rowName("letter", id)); err != nil {
			return err
		}
		l, err := row.DecodeLetter(id, data)
		out = append(out, l)
		return err
	}, "SELECT id, data FROM letter ORDER BY id")
	return out, err
}
