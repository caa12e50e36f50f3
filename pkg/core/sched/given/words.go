package given

// The words of the REASON column, as Slurm spells them.
const (
	WordResources = "Resources"       // not enough is free
	WordPriority  = "Priority"        // enough is free, or will be, but others are ahead
	WordNodes     = "ReqNodeNotAvail" // the nodes or cards that could hold it are out of service
	WordBad       = "BadConstraints"  // the ask can't be read
	WordNone      = "None"            // nothing keeps it: the next plan starts it

	WordReservation = "Reservation" // it asked for a reservation that it can't start in yet
	// A bound of its user or account keeps it.
	WordUserCap    = "QOSMaxGRESPerUser"
	WordAccountCap = "AssocGrpGRES"
	WordNoAccount  = "InvalidAccount"
)
