-- What people are to be told of events, each letter as JSON, until it was delivered.
CREATE TABLE letter (
	id   INTEGER PRIMARY KEY,
	data TEXT NOT NULL
) STRICT;
