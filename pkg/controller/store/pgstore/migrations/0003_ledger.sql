-- What members of attempts used, each as JSON with its series as bytes. Attempts of before have none.
CREATE TABLE measure (
	job    BIGINT NOT NULL,
	epoch  BIGINT NOT NULL,
	member BIGINT NOT NULL,
	data   TEXT NOT NULL,
	PRIMARY KEY (job, epoch, member)
);

-- What was used by day and by whom, kept for ever. Commits add to its rows what the bookings of attempts have changed;
-- attempts that ended before this table was made are not in it. sum is a checksum that is added to alike.
CREATE TABLE ledger (
	day          TEXT COLLATE "C" NOT NULL,
	"user"       TEXT COLLATE "C" NOT NULL,
	account      TEXT COLLATE "C" NOT NULL,
	"partition"  TEXT COLLATE "C" NOT NULL,
	card_type    TEXT COLLATE "C" NOT NULL,
	cause        TEXT COLLATE "C" NOT NULL,
	attempts     BIGINT NOT NULL,
	card_ms      BIGINT NOT NULL,
	cpu_ms       BIGINT NOT NULL,
	lost_card_ms BIGINT NOT NULL,
	lost_cpu_ms  BIGINT NOT NULL,
	seen_card_ms BIGINT NOT NULL,
	busy_card_ms BIGINT NOT NULL,
	idle_card_ms BIGINT NOT NULL,
	seen_cpu_ms  BIGINT NOT NULL,
	used_cpu_ms  BIGINT NOT NULL,
	joules       BIGINT NOT NULL,
	starts       BIGINT NOT NULL,
	wait_ms      BIGINT NOT NULL,
	sum          BIGINT NOT NULL,
	PRIMARY KEY (day, "user", account, "partition", card_type, cause)
) WITH (fillfactor = 70);
