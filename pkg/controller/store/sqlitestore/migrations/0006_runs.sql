-- Processes of the controller, oldest first; began is the number of the last commit before.
CREATE TABLE run (
	id    INTEGER PRIMARY KEY,
	name  TEXT NOT NULL,
	began INTEGER NOT NULL
) STRICT;
