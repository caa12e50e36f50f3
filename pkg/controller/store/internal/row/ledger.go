package row

import (
	"encoding/json"
	"fmt"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
)

type booking struct {
	Epoch     int           `json:"epoch"`
	User      string        `json:"user"`
	Account   string        `json:"account,omitempty"`
	Partition string        `json:"partition,omitempty"`
	Waited    time.Duration `json:"waited,omitempty"`
	CPUs      int           `json:"cpus,omitempty"`
	Cards     []bookedCards `json:"cards,omitempty"`
	Started   time.Time     `json:"started"`
	Until     time.Time     `json:"until"`
	Cause     api.Cause     `json:"cause,omitempty"`
	Kept      time.Duration `json:"kept,omitempty"`
	SeenCPUMS int64         `json:"seen_cpu_ms,omitempty"`
	UsedCPUMS int64         `json:"used_cpu_ms,omitempty"`
}

type bookedCards struct {
	Type    string `json:"type"`
	Cards   int    `json:"cards"`
	SeenMS  int64  `json:"seen_ms,omitempty"`
	BusyMS  int64  `json:"busy_ms,omitempty"`
	IdleMS  int64  `json:"idle_ms,omitempty"`
	Joules  int64  `json:"joules,omitempty"`
	StartMS int64  `json:"start_ms,omitempty"`
}

func encodeBooking(b *gang.Booking) *booking {
	if b == nil {
		return nil
	}
	return &booking{b.Epoch, b.User, b.Account, b.Partition, b.Waited, b.CPUs,
		each(b.Cards, func(c gang.BookedCards) bookedCards { return bookedCards(c) }),
		b.Started, b.Until, b.Cause, b.Kept, b.SeenCPUMS, b.UsedCPUMS}
}

func decodeBooking(b *booking) *gang.Booking {
	if b == nil {
		return nil
	}
	return &gang.Booking{Epoch: b.Epoch, User: b.User, Account: b.Account, Partition: b.Partition, Waited: b.Waited, CPUs: b.CPUs,
		Cards: each(b.Cards, func(c bookedCards) gang.BookedCards { return gang.BookedCards(c) }), Started: b.Started, Until: b.Until,
		Cause: b.Cause,
		Kept:  b.Kept, SeenCPUMS: b.SeenCPUMS, UsedCPUMS: b.UsedCPUMS}
}

// EpochBooking is the booking alone of a row of an epoch, nil: it has none.
func EpochBooking(data []byte) (*gang.Booking, error) {
	var r struct {
		Booking *booking `json:"booking"`
	}
	err := json.Unmarshal(data, &r)
	return decodeBooking(r.Booking), err
}

// measure is a measure as it is on the wire but for its series, whose points are bytes here: a third
// of the room.
type measure struct {
	api.Measure
	Cards  []cardMeasure `json:"cards,omitempty"`
	Series *series       `json:"series,omitempty"`
}

type cardMeasure struct {
	api.CardMeasure
	Series *series `json:"series,omitempty"`
}

type series struct {
	Step   float64 `json:"step"`
	Use    []byte  `json:"use"`
	Memory []byte  `json:"memory"`
}

func encodeSeries(s *api.MeasureSeries) *series {
	if s == nil {
		return nil
	}
	return &series{s.Step, s.Use, s.Memory}
}

func decodeSeries(s *series) *api.MeasureSeries {
	if s == nil {
		return nil
	}
	return &api.MeasureSeries{Step: s.Step, Use: s.Use, Memory: s.Memory}
}

// Measure encodes what a member used.
func Measure(m *api.Measure) ([]byte, error) {
	r := measure{Measure: *m, Series: encodeSeries(m.Series)}
	for _, c := range m.Cards {
		r.Cards = append(r.Cards, cardMeasure{CardMeasure: c, Series: encodeSeries(c.Series)})
	}
	return json.Marshal(&r)
}

// DecodeMeasure decodes it.
func DecodeMeasure(job int64, data []byte) (*api.Measure, error) {
	var r measure
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("row of a measure of job %d: %w", job, err)
	}
	m := r.Measure
	m.Series, m.Cards = decodeSeries(r.Series), nil
	for _, c := range r.Cards {
		c.CardMeasure.Series = decodeSeries(c.Series)
		m.Cards = append(m.Cards, c.CardMeasure)
	}
	return &m, nil
}
