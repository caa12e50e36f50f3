package gang

// site is what its admins and users have set up beside jobs, and what follows for jobs and nodes where that changes.
type site struct {
	clock  *clock
	record *record
	jobs   *jobs
	nodes  *nodes
	specs  *specs
	queue  *queue
	fleet  *fleet

	partitions   partitions
	reservations reservations
	crontabs     crontabs
	pools        pools
	holdings     holdings
}
