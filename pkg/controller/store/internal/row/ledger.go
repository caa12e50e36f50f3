package row

import (
	"encoding/json"
	"fmt"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
)

// EpochBooking is the booking alone of a row of an epoch, nil: it has none.
func EpochBooking(data []byte) (*gang.Booking, error) {
	var r struct {
		Booking *gang.Booking `json:"booking"`
	}
	err := json.Unmarshal(data, &r)
	return r.Booking, err
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
