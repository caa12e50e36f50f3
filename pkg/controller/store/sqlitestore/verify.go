package sqlitestore

import (
	"context"
	"fmt"

	"gangd/pkg/controller/store/internal/sqlstore"
)

// checks are counted by SQL and each row they give is one disagreement, as a sentence.
var checks = []string{
	"SELECT printf('job %d is not below the next id %d', job.id, next_id) FROM job, meta WHERE job.id >= next_id",
	"SELECT printf('rank %d of job %d has a row, the job has none', rank.id & 65535, rank.id >> 16) FROM rank " +
		"WHERE NOT EXISTS (SELECT 1 FROM job WHERE job.id = rank.id >> 16) AND NOT EXISTS (SELECT 1 FROM gone WHERE gone.job = rank.id >> 16)",
	"SELECT printf('rank %d of job %d has a row, the job has %d ranks', rank.id & 65535, job.id, job.data ->> 'size') FROM rank JOIN job " +
		"ON job.id = rank.id >> 16 " +
		"WHERE rank.id & 65535 >= job.data ->> 'size'",
	"SELECT printf('epoch %d of job %d has a row, the job has none', epoch.epoch, epoch.job) FROM epoch " +
		"WHERE NOT EXISTS (SELECT 1 FROM job WHERE job.id = epoch.job) AND NOT EXISTS (SELECT 1 FROM gone WHERE gone.job = epoch.job)",
	"SELECT printf('job %d was forgotten and is there', gone.job) FROM gone JOIN job ON job.id = gone.job",
	"SELECT printf('job %d was forgotten and is not below the next id %d', gone.job, next_id) FROM gone, meta WHERE gone.job >= next_id",
	"SELECT printf('spec %s is of no job', hash) FROM spec WHERE NOT EXISTS (SELECT 1 FROM job WHERE substr(job.spec, 1, 8) = substr(hash, " +
		"1, 8) AND job.spec = hash)",
	"SELECT printf('epoch %d of job %d has a row, the job is at epoch %d', epoch.epoch, job.id, coalesce(job.data ->> 'epoch', 0)) FROM " +
		"epoch JOIN job ON job.id = epoch.job " +
		"WHERE epoch.epoch > coalesce(job.data ->> 'epoch', 0)",
	"SELECT printf('event %d is not below the next number %d', seq, next_seq) FROM event, meta WHERE seq >= next_seq",
	"SELECT printf('event %d says that its number is %d', seq, data ->> 'seq') FROM event WHERE data ->> 'seq' IS NOT seq",
	"SELECT printf('event %d is of job %d, its row is under job %d', seq, data ->> 'job_id', job) FROM event WHERE data ->> 'job_id' IS " +
		"NOT job",
	"SELECT printf('spec %s of job %d is missing', spec, id) FROM job WHERE NOT EXISTS (SELECT 1 FROM spec WHERE spec.hash = job.spec)",
	"SELECT printf('job %d has a verdict but no end', id) FROM job WHERE ended IS NULL AND data ->> 'verdict' IS NOT NULL",
	"SELECT printf('job %d has an end but no verdict', id) FROM job WHERE ended IS NOT NULL AND data ->> 'verdict' IS NULL",
}

// maxFindings bounds the answer: beyond a hundred rows the file is lost anyway.
const maxFindings = 100

// Verify asks SQLite for the integrity of the file and recounts what rows say of each other.
func (s *Store) Verify(ctx context.Context) ([]string, error) {
	var out []string
	err := database{s}.Reading(ctx, func(r *sqlstore.Reader) error {
		collect := func(scan func(...any) error) error {
			var text string
			if err := scan(&text); err != nil {
				return err
			}
			if text != "ok" && len(out) < maxFindings {
				out = append(out, text)
			}
			return nil
		}
		if err := r.Each(collect, fmt.Sprintf("PRAGMA integrity_check(%d)", maxFindings)); err != nil {
			return err
		}
		for _, q := range checks {
			if err := r.Each(collect, fmt.Sprintf("%s LIMIT %d", q, maxFindings)); err != nil {
				return err
			}
		}
		lines, err := sqlstore.RecountLedger(r, maxFindings)
		out = append(out, lines...)
		return err
	})
	if err != nil {
		return out, fmt.Errorf("verify: %w", err)
	}
	return out, nil
}
