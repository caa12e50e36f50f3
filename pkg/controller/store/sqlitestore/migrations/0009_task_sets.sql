-- Checkpoints and barriers of the tasks of steps: step is its number, -1 of a gang's own.
CREATE TABLE checkpoint_set (
	id    INTEGER PRIMARY KEY,
	job   INTEGER NOT NULL,
	epoch INTEGER NOT NULL,
	step  INTEGER NOT NULL,
	rank  INTEGER NOT NULL,
	put   INTEGER NOT NULL,
	bytes INTEGER NOT NULL,
	key   TEXT NOT NULL,
	UNIQUE (job, epoch, step, rank, put)
) STRICT;
INSERT INTO checkpoint_set (id, job, epoch, step, rank, put, bytes, key)
	SELECT id, job, epoch, -1, rank, put, bytes, key FROM checkpoint;
DROP TABLE checkpoint;
ALTER TABLE checkpoint_set RENAME TO checkpoint;

CREATE TABLE release_set (
	id    INTEGER PRIMARY KEY,
	job   INTEGER NOT NULL,
	epoch INTEGER NOT NULL,
	step  INTEGER NOT NULL,
	name  TEXT NOT NULL,
	keys  TEXT NOT NULL,
	UNIQUE (job, epoch, step, name)
) STRICT;
INSERT INTO release_set (id, job, epoch, step, name, keys) SELECT id, job, epoch, -1, name, keys FROM release;
DROP TABLE release;
ALTER TABLE release_set RENAME TO release
