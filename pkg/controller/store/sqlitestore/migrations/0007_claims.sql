-- What the planner keeps for waiting gangs: one value, replaced as a whole.
CREATE TABLE claims (
	one  INTEGER PRIMARY KEY CHECK (one = 1),
	data TEXT NOT NULL
) STRICT;
