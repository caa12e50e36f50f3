-- Checkpoints that ranks put, in pieces so that no commit waits long for one. A checkpoint
-- without a row here is one whose put was not finished: its pieces are removed at the next start.
-- put counts the checkpoints of one rank within an epoch, from 1.
CREATE TABLE checkpoint (
	id    INTEGER PRIMARY KEY,
	job   INTEGER NOT NULL,
	epoch INTEGER NOT NULL,
	rank  INTEGER NOT NULL,
	put   INTEGER NOT NULL,
	bytes INTEGER NOT NULL,
	key   TEXT NOT NULL,
	UNIQUE (job, epoch, rank, put)
) STRICT;

-- id = checkpoint * 1024 + piece: one tree, no index.
CREATE TABLE checkpoint_piece (
	id   INTEGER PRIMARY KEY,
	data BLOB NOT NULL
) STRICT;
