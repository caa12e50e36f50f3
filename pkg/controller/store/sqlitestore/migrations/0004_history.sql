-- Jobs that were forgotten and of which rows may be left; a job here has no row in job.
CREATE TABLE gone (
	job INTEGER PRIMARY KEY
) STRICT;

-- Who has a spec. Eight letters of the hash find it, and keep the index a fifth of its size.
CREATE INDEX job_spec ON job (substr(spec, 1, 8));
