package gang

// site is what its admins and users have set up beside jobs.
type site struct {
	partitions   partitions
	reservations reservations
	crontabs     crontabs
	pools        pools
	holdings     holdings
}
