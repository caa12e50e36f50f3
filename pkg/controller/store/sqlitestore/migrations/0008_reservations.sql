-- Reservations by name, each as JSON. A row that is gone was deleted, or is over.
CREATE TABLE reservation (
	name TEXT PRIMARY KEY,
	data TEXT NOT NULL
) STRICT, WITHOUT ROWID;
