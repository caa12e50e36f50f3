package gpu

import (
	"context"

	"gangd/pkg/api"
)

// Provider gives inventory and samples. Its methods may block in a driver; callers bound
// them by the context and treat a late answer as "unknown".
type Provider interface {
	// Inventory lists the cards, by index. An empty list is a machine without cards.
	Inventory(ctx context.Context) ([]api.CardInfo, error)
	// Sample reads what each card does now, in the order of the inventory. A card that has
	// left the bus is still there, Unhealthy.
	Sample(ctx context.Context) ([]Sample, error)
	// Changed gives a value when a sample is worth taking before its time; nil when the
	// provider can't tell.
	Changed() <-chan struct{}
	Close() error
}

// Sample is one reading of one card.
type Sample struct {
	UUID        string
	UsedBytes   int64  // VRAM in use by anyone, -1 unknown
	Utilization int    // percent, -1 unknown
	PowerWatts  int    // -1 unknown
	Unhealthy   string // why it must not be used; empty: fine
	Xid         int    // last fatal Xid, 0 none; one that an application caused is not fatal
	// Processes hold VRAM here, as far as the driver lists them.
	Processes []Process
	// Users are the processes that used the card since the sample before. UsersKnown is false
	// where the driver does not say, and then Users is empty.
	Users      []User
	UsersKnown bool
	// StrangersBytes is part of UsedBytes. It is set by providers that know it outright
	// (simgpu), and then Processes are those of gangs alone; -1: derive it from Processes.
	StrangersBytes int64
}

// Resumer is a provider that remembers faults of the past, which no reading shows any more.
type Resumer interface {
	// Resume forgets what a card did up to now, on a person's word. A fault that still shows
	// comes back with the next reading.
	Resume(ctx context.Context, uuid string) error
}

// Process holds VRAM on a card.
type Process struct {
	PID       int
	VRAMBytes int64 // -1 unknown
}

// User is a process that used a card.
type User struct {
	PID         int
	Utilization int // percent
}
