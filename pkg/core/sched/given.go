package sched

import (
	"time"

	"gangd/pkg/core/sched/order"
)

// given is what a plan is made of, and what all its owners are told: the view, the rules, and who is let to the front.
type given struct {
	now          time.Time
	view         *View
	policy       *order.Policy
	depth        int                  // backfills that are made
	reservations *reservations        // nil: none
	front        map[int64]order.Turn // who waited too long, and is let to the front
	next         time.Time            // when a plan would decide otherwise though nothing has happened; zero: never
	cardCount    int                  // cards of the view; 0: not counted yet
}
