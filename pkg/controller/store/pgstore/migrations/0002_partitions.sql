-- What was made of partitions at run time, by name, each as JSON. A row that is gone: the partition is as configured.
CREATE TABLE partition (
	name TEXT COLLATE "C" PRIMARY KEY,
	data TEXT NOT NULL
);
