-- What gangd accepted. Columns beside data are what queries select by; data is one JSON
-- object per row (pkg/controller/store/internal/row). Times are nanoseconds since 1970, UTC.

-- lineage: number of the last commit. next_id, next_seq: the smallest never given out.
CREATE TABLE meta (
	one      INTEGER PRIMARY KEY CHECK (one = 1),
	lineage  INTEGER NOT NULL,
	next_id  INTEGER NOT NULL,
	next_seq INTEGER NOT NULL
) STRICT;
INSERT INTO meta (one, lineage, next_id, next_seq) VALUES (1, 0, 1, 1);

CREATE TABLE spec (
	hash TEXT NOT NULL UNIQUE,
	data TEXT NOT NULL
) STRICT;

-- ended is NULL while the job lives. Only ended and data ever change, so that updates of
-- a live job touch no index.
CREATE TABLE job (
	id       INTEGER PRIMARY KEY,
	array_id INTEGER NOT NULL,
	user     TEXT NOT NULL,
	spec     TEXT NOT NULL,
	submit   INTEGER NOT NULL,
	ended    INTEGER,
	data     TEXT NOT NULL
) STRICT;
CREATE INDEX job_live ON job (id) WHERE ended IS NULL;
CREATE INDEX job_ended ON job (ended) WHERE ended IS NOT NULL;
CREATE INDEX job_user_ended ON job (user, ended) WHERE ended IS NOT NULL;
CREATE INDEX job_array ON job (array_id) WHERE array_id != 0;

-- id = job * 65536 + rank: the integer key makes an upsert one descent of one tree. A rank
-- without a row is blocked.
CREATE TABLE rank (
	id   INTEGER PRIMARY KEY,
	data TEXT NOT NULL
) STRICT;

CREATE TABLE epoch (
	job   INTEGER NOT NULL,
	epoch INTEGER NOT NULL,
	data  TEXT NOT NULL,
	PRIMARY KEY (job, epoch)
) STRICT, WITHOUT ROWID;

CREATE TABLE node (
	name TEXT PRIMARY KEY,
	data TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE event (
	seq  INTEGER PRIMARY KEY,
	job  INTEGER NOT NULL,
	data TEXT NOT NULL
) STRICT;
CREATE INDEX event_job ON event (job);
