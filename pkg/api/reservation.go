package api

import (
	"slices"
	"time"
)

// Reservation is nodes that are, for a time, only for some, or for nobody.
type Reservation struct {
	Name     string            `json:"name"`
	Start    time.Time         `json:"start_time"` // of the occurrence that goes on or comes next
	End      time.Time         `json:"end_time"`
	Nodes    []string          `json:"nodes"`              // sorted
	Users    []string          `json:"users,omitempty"`    // who may use it, sorted; empty: anybody of Accounts
	Accounts []string          `json:"accounts,omitempty"` // under which accounts, sorted; empty: any
	Flags    []ReservationFlag `json:"flags,omitempty"`    // sorted
	Picked   bool              `json:"picked,omitempty"`   // its nodes were asked for by their number
	By       string            `json:"created_by,omitempty"`
	Active   bool              `json:"active"` // now is between Start and End
}

// ReservationFlag is one thing that is special about a reservation.
type ReservationFlag string

// The flags, spelled as Slurm spells those that it has.
const (
	FlagMaint      ReservationFlag = "MAINT"       // of nodes to be worked on: may overlap others, needs no users
	FlagIgnoreJobs ReservationFlag = "IGNORE_JOBS" // gangs that will still run at its start may stay
	FlagDrain      ReservationFlag = "DRAIN"       // gangs that still run at its start are stopped in time, with their notice
	FlagDaily      ReservationFlag = "DAILY"
	FlagWeekly     ReservationFlag = "WEEKLY"
)

// ReservationFlags lists them.
var ReservationFlags = []ReservationFlag{FlagMaint, FlagIgnoreJobs, FlagDrain, FlagDaily, FlagWeekly}

// Has reports whether a flag is set.
func (r *Reservation) Has(f ReservationFlag) bool { return slices.Contains(r.Flags, f) }

// Days is how many days after its start the next occurrence starts; 0: there is none.
func (r *Reservation) Days() int {
	switch {
	case r.Has(FlagDaily):
		return 1
	case r.Has(FlagWeekly):
		return 7
	}
	return 0
}

// Every is Days as a time.
func (r *Reservation) Every() time.Duration { return time.Duration(r.Days()) * 24 * time.Hour }

// Holds reports whether a node is of it.
func (r *Reservation) Holds(node string) bool {
	_, ok := slices.BinarySearch(r.Nodes, node)
	return ok
}

// Admits reports whether jobs of a user under an account may use it.
func (r *Reservation) Admits(user, account string) bool {
	if len(r.Users)+len(r.Accounts) == 0 {
		return false
	}
	return among(r.Users, user) && among(r.Accounts, account)
}

// among: a list has it, or is empty and has all.
func among(list []string, name string) bool { return len(list) == 0 || slices.Contains(list, name) }

// ReservationRequest is the body of POST /v1/reservations and of
// POST /v1/reservations/{name}/update. Of an update fields that are not there stay.
type ReservationRequest struct {
	Name     string         `json:"name,omitempty"` // of a new one
	Start    *time.Time     `json:"start_time,omitempty"`
	End      *time.Time     `json:"end_time,omitempty"`
	Duration *time.Duration `json:"duration_ns,omitempty"` // instead of End
	Nodes    *[]string      `json:"nodes,omitempty"`       // "ALL" stands for every node that is known
	// NodeCount asks for so many nodes, of Nodes if they are there too: those that are free then.
	NodeCount *int               `json:"node_count,omitempty" bound:"..65536"`
	Users     *[]string          `json:"users,omitempty" bound:"n=1000"`
	Accounts  *[]string          `json:"accounts,omitempty" bound:"n=1000"`
	Flags     *[]ReservationFlag `json:"flags,omitempty" bound:"n=16"`
}

// ReservationsReply is `gctl show reservation --json`.
type ReservationsReply struct {
	SchemaVersion int           `json:"schema_version"`
	Reservations  []Reservation `json:"reservations"`
}

// NodeReservation is what a node's row says of the reservation that is on it now.
type NodeReservation struct {
	Name  string    `json:"name"`
	Maint bool      `json:"maint,omitempty"`
	Until time.Time `json:"until"`
}
