-- What gangd accepted: the tables of sqlitestore in their newest form (see there what each holds), and
-- what several controllers share. Names compare by their bytes. Room is left in pages of rows
-- that change, so that a change touches no index.

-- lineage: number of the last commit. next_id, next_seq: the smallest never given out.
-- term: of the leader, without which nothing is written. settled counts how often an outcome was asked for.
CREATE TABLE meta (
	one      BIGINT PRIMARY KEY CHECK (one = 1),
	lineage  BIGINT NOT NULL,
	next_id  BIGINT NOT NULL,
	next_seq BIGINT NOT NULL,
	term     BIGINT NOT NULL,
	settled  BIGINT NOT NULL
) WITH (fillfactor = 10);
INSERT INTO meta VALUES (1, 0, 1, 1, 0, 0);

-- The same for what is written beside commits; lineage counts it.
CREATE TABLE beside (
	one     BIGINT PRIMARY KEY CHECK (one = 1),
	lineage BIGINT NOT NULL,
	term    BIGINT NOT NULL,
	settled BIGINT NOT NULL
) WITH (fillfactor = 10);
INSERT INTO beside VALUES (1, 0, 0, 0);

-- Who leads, until when. session is the application_name of its connections; controller is JSON.
CREATE TABLE leader (
	one        BIGINT PRIMARY KEY CHECK (one = 1),
	term       BIGINT NOT NULL,
	session    TEXT NOT NULL,
	controller TEXT NOT NULL,
	until      TIMESTAMPTZ NOT NULL
) WITH (fillfactor = 10);
INSERT INTO leader VALUES (1, 0, '', '{}', 'epoch');

-- Which controllers may lead, as JSON, by version.
CREATE TABLE controllers (
	one     BIGINT PRIMARY KEY CHECK (one = 1),
	version BIGINT NOT NULL,
	data    TEXT NOT NULL,
	since   TIMESTAMPTZ NOT NULL
);
INSERT INTO controllers VALUES (1, 0, '[]', now());

-- What controllers share and the database must not know.
CREATE TABLE sealed (
	name TEXT COLLATE "C" PRIMARY KEY,
	data BYTEA NOT NULL
);

-- What each commit changed, for those that follow: they read the rows themselves.
CREATE TABLE commit_log (
	lineage      BIGINT PRIMARY KEY,
	term         BIGINT NOT NULL,
	jobs         BIGINT[] NOT NULL,
	nodes        TEXT[] NOT NULL,
	reservations TEXT[] NOT NULL
);

CREATE TABLE spec (
	hash TEXT COLLATE "C" PRIMARY KEY,
	data TEXT NOT NULL
);

CREATE TABLE job (
	id       BIGINT PRIMARY KEY,
	array_id BIGINT NOT NULL,
	"user"   TEXT COLLATE "C" NOT NULL,
	spec     TEXT COLLATE "C" NOT NULL,
	submit   BIGINT NOT NULL,
	ended    BIGINT,
	data     TEXT NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX job_live ON job (id) WHERE ended IS NULL;
CREATE INDEX job_ended ON job (ended) WHERE ended IS NOT NULL;
CREATE INDEX job_user_ended ON job ("user", ended) WHERE ended IS NOT NULL;
CREATE INDEX job_array ON job (array_id) WHERE array_id != 0;
CREATE INDEX job_spec ON job (substr(spec, 1, 8));

CREATE TABLE rank (
	id   BIGINT PRIMARY KEY,
	data TEXT NOT NULL
) WITH (fillfactor = 70);

CREATE TABLE epoch (
	job   BIGINT NOT NULL,
	epoch BIGINT NOT NULL,
	data  TEXT NOT NULL,
	PRIMARY KEY (job, epoch)
);

CREATE TABLE step (
	job   BIGINT NOT NULL,
	epoch BIGINT NOT NULL,
	step  BIGINT NOT NULL,
	data  TEXT NOT NULL,
	PRIMARY KEY (job, epoch, step)
);

CREATE TABLE node (
	name TEXT COLLATE "C" PRIMARY KEY,
	data TEXT NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE reservation (
	name TEXT COLLATE "C" PRIMARY KEY,
	data TEXT NOT NULL
);

CREATE TABLE claims (
	one  BIGINT PRIMARY KEY CHECK (one = 1),
	data TEXT NOT NULL
) WITH (fillfactor = 10);

CREATE TABLE event (
	seq  BIGINT PRIMARY KEY,
	job  BIGINT NOT NULL,
	data TEXT NOT NULL
);
CREATE INDEX event_job ON event (job);

CREATE TABLE checkpoint (
	id    BIGINT PRIMARY KEY,
	job   BIGINT NOT NULL,
	epoch BIGINT NOT NULL,
	step  BIGINT NOT NULL,
	rank  BIGINT NOT NULL,
	put   BIGINT NOT NULL,
	bytes BIGINT NOT NULL,
	key   TEXT COLLATE "C" NOT NULL,
	UNIQUE (job, epoch, step, rank, put)
);

CREATE TABLE checkpoint_piece (
	id   BIGINT PRIMARY KEY,
	data BYTEA NOT NULL
);
ALTER TABLE checkpoint_piece ALTER COLUMN data SET STORAGE EXTERNAL;

CREATE TABLE release (
	id    BIGINT PRIMARY KEY,
	job   BIGINT NOT NULL,
	epoch BIGINT NOT NULL,
	step  BIGINT NOT NULL,
	name  TEXT COLLATE "C" NOT NULL,
	keys  TEXT NOT NULL,
	UNIQUE (job, epoch, step, name)
);

CREATE TABLE gone (
	job BIGINT PRIMARY KEY
);

CREATE TABLE run (
	id    BIGINT PRIMARY KEY,
	name  TEXT NOT NULL,
	began BIGINT NOT NULL
);
