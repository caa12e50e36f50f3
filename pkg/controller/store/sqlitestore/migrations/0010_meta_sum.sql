-- A checksum of the counters, NULL until the next commit.
ALTER TABLE meta ADD COLUMN sum INTEGER
