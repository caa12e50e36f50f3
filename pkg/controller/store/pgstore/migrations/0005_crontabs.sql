-- The cron tables of users, by their names, each as JSON. What a line asks for is the spec of its job.
CREATE TABLE crontab (
	name TEXT COLLATE "C" PRIMARY KEY,
	data TEXT NOT NULL
);
