-- What members of attempts used, each as JSON with its series as bytes. Attempts of before have none.
CREATE TABLE measure (
	job    INTEGER NOT NULL,
	epoch  INTEGER NOT NULL,
	member INTEGER NOT NULL,
	data   TEXT NOT NULL,
	PRIMARY KEY (job, epoch, member)
) STRICT, WITHOUT ROWID;

-- What was used by day and by whom, kept for ever. Commits add to its rows what the bookings of attempts have changed;
-- attempts that ended before this table was made are not in it. sum is a checksum that is added to alike.
CREATE TABLE ledger (
	day          TEXT NOT NULL,
	"user"       TEXT NOT NULL,
	account      TEXT NOT NULL,
	"partition"  TEXT NOT NULL,
	card_type    TEXT NOT NULL,
	cause        TEXT NOT NULL,
	attempts     INTEGER NOT NULL,
	card_ms      INTEGER NOT NULL,
	cpu_ms       INTEGER NOT NULL,
	lost_card_ms INTEGER NOT NULL,
	lost_cpu_ms  INTEGER NOT NULL,
	seen_card_ms INTEGER NOT NULL,
	busy_card_ms INTEGER NOT NULL,
	idle_card_ms INTEGER NOT NULL,
	seen_cpu_ms  INTEGER NOT NULL,
	used_cpu_ms  INTEGER NOT NULL,
	joules       INTEGER NOT NULL,
	starts       INTEGER NOT NULL,
	wait_ms      INTEGER NOT NULL,
	sum          INTEGER NOT NULL,
	PRIMARY KEY (day, "user", account, "partition", card_type, cause)
) STRICT, WITHOUT ROWID;
