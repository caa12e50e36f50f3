-- Barriers that were released; keys is a JSON object, the key of its arrival by rank. id grows, so
-- that the newest of an epoch are those with the largest.
CREATE TABLE release (
	id    INTEGER PRIMARY KEY,
	job   INTEGER NOT NULL,
	epoch INTEGER NOT NULL,
	name  TEXT NOT NULL,
	keys  TEXT NOT NULL,
	UNIQUE (job, epoch, name)
) STRICT;
