package api

import (
	"cmp"
	"time"
)

// The ledger is what was used on each day, by whom and how it ended. It is written in the commits
// that end attempts, and each hour for those that run; history may be forgotten, the ledger is not.

// LedgerKey is what the ledger counts by. Days are those of UTC. A job that asked for no account has
// an empty one, CPUs without a card have an empty CardType, and what still runs has no Cause.
type LedgerKey struct {
	Day       string `json:"day,omitempty"` // 2026-11-23
	User      string `json:"user,omitempty"`
	Account   string `json:"account,omitempty"`
	Partition string `json:"partition,omitempty"`
	CardType  string `json:"card_type,omitempty"`
	Cause     Cause  `json:"cause,omitempty"`
}

// Compare orders by day, then by the other words in their order.
func (k LedgerKey) Compare(o LedgerKey) int {
	return cmp.Or(cmp.Compare(k.Day, o.Day), cmp.Compare(k.User, o.User), cmp.Compare(k.Account, o.Account),
		cmp.Compare(k.Partition, o.Partition),
		cmp.Compare(k.CardType, o.CardType), cmp.Compare(k.Cause, o.Cause))
}

// LedgerFigures are sums. Times of cards and CPUs are in milliseconds, so that nothing is lost where a day
// ends within one. What was not seen is in no figure that says what was seen.
type LedgerFigures struct {
	Attempts int64 `json:"attempts"` // that ended on that day
	CardMS   int64 `json:"card_ms"`  // held
	CPUMS    int64 `json:"cpu_ms"`   // held
	// LostCardMS and LostCPUMS are those of attempts whose work did not last: they ended otherwise than by
	// themselves and well, or by a cancel, and what a checkpoint handed over is taken off.
	LostCardMS int64 `json:"lost_card_ms"`
	LostCPUMS  int64 `json:"lost_cpu_ms"`
	SeenCardMS int64 `json:"seen_card_ms"` // of CardMS: utilization is known
	BusyCardMS int64 `json:"busy_card_ms"` // utilization times time
	IdleCardMS int64 `json:"idle_card_ms"` // nothing ran on the card
	SeenCPUMS  int64 `json:"seen_cpu_ms"`  // of CPUMS: what was used is known
	UsedCPUMS  int64 `json:"used_cpu_ms"`
	Joules     int64 `json:"joules"`  // of cards, where known
	Starts     int64 `json:"starts"`  // attempts that began on that day
	WaitMS     int64 `json:"wait_ms"` // of those: since they could have started
	// StartCardMS is what of SeenCardMS was before the first use of a card of the same member, where that was seen.
	StartCardMS int64 `json:"start_card_ms"`
}

// Each calls f for each figure of two, in the order of their fields.
func (l *LedgerFigures) Each(o *LedgerFigures, f func(a, b *int64)) {
	f(&l.Attempts, &o.Attempts)
	f(&l.CardMS, &o.CardMS)
	f(&l.CPUMS, &o.CPUMS)
	f(&l.LostCardMS, &o.LostCardMS)
	f(&l.LostCPUMS, &o.LostCPUMS)
	f(&l.SeenCardMS, &o.SeenCardMS)
	f(&l.BusyCardMS, &o.BusyCardMS)
	f(&l.IdleCardMS, &o.IdleCardMS)
	f(&l.SeenCPUMS, &o.SeenCPUMS)
	f(&l.UsedCPUMS, &o.UsedCPUMS)
	f(&l.Joules, &o.Joules)
	f(&l.Starts, &o.Starts)
	f(&l.WaitMS, &o.WaitMS)
	f(&l.StartCardMS, &o.StartCardMS)
}

// Add adds another's figures.
func (l *LedgerFigures) Add(o LedgerFigures) { l.Each(&o, func(a, b *int64) { *a += *b }) }

// Sub takes them away.
func (l *LedgerFigures) Sub(o LedgerFigures) { l.Each(&o, func(a, b *int64) { *a -= *b }) }

// LedgerRow is a line of the ledger, or of a sum over many.
type LedgerRow struct {
	LedgerKey
	LedgerFigures
}

// LedgerDay writes a day as [LedgerKey] does.
func LedgerDay(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// LedgerBy are the words that a sum may be grouped by.
var LedgerBy = []string{"day", "month", "user", "account", "partition", "card_type", "cause"}

// By gives the key with nothing but these words; a month is a day without its last part.
func (k LedgerKey) By(words []string) (out LedgerKey) {
	for _, w := range words {
		switch w {
		case "day":
			out.Day = k.Day
		case "month":
			out.Day = k.Day[:min(len(k.Day), len("2026-11"))]
		case "user":
			out.User = k.User
		case "account":
			out.Account = k.Account
		case "partition":
			out.Partition = k.Partition
		case "card_type":
			out.CardType = k.CardType
		case "cause":
			out.Cause = k.Cause
		}
	}
	return out
}

// LedgerQuery is the query of GET /v1/ledger. Days are inclusive, an empty one is no bound. Lists are
// of any of these; an empty list is all.
type LedgerQuery struct {
	From, To                                      string
	By                                            []string // of [LedgerBy]; none: one sum of all
	Users, Accounts, Partitions, CardTypes, Cause []string
}

// LedgerReply answers it, rows in the order of their keys.
type LedgerReply struct {
	SchemaVersion int         `json:"schema_version"`
	From          string      `json:"from,omitempty"` // the first day that there is, or as asked
	To            string      `json:"to,omitempty"`
	By            []string    `json:"by"`
	Rows          []LedgerRow `json:"rows"`
}
