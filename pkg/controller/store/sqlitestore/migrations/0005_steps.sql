-- Steps that have ended, as they are on the wire. Those that run are in the row of their job. A
-- primary key in this order keeps the steps of a job together and in the order of their start.
CREATE TABLE step (
	job   INTEGER NOT NULL,
	epoch INTEGER NOT NULL,
	step  INTEGER NOT NULL,
	data  TEXT NOT NULL,
	PRIMARY KEY (job, epoch, step)
) STRICT, WITHOUT ROWID;
