package measure

import (
	"math"
	"time"

	"gangd/pkg/api"
)

// firstStep is the time of a point of a run that is not two minutes old: what the node looks at.
const firstStep = time.Second

// track makes the two series of a member or a card.
type track struct {
	Step   time.Duration `json:"step"`
	Use    line          `json:"use"`
	Memory line          `json:"memory"`
}

// line is a series and the point that it is at.
type line struct {
	Points api.Points    `json:"points,omitempty"`
	Open   time.Duration `json:"open"`  // of the point under way
	Known  time.Duration `json:"known"` // of that
	Sum    float64       `json:"sum"`   // value times seconds of that
}

// add goes on for a span with two values; one below 0 is unknown.
func (t *track) add(span time.Duration, use, memory float64) {
	for span > 0 {
		part := min(span, t.Step-t.Use.Open)
		full := t.Use.add(part, t.Step, use)
		t.Memory.add(part, t.Step, memory)
		span -= part
		if full {
			t.Step *= 2
			t.Use.halve()
			t.Memory.halve()
		}
	}
}

// add reports whether there is no room for another point.
func (l *line) add(part, step time.Duration, v float64) (full bool) {
	l.Open += part
	if v >= 0 {
		l.Known += part
		l.Sum += v * part.Seconds()
	}
	if l.Open < step {
		return false
	}
	l.Points = append(l.Points, l.point())
	l.Open, l.Known, l.Sum = 0, 0, 0
	return len(l.Points) == api.MeasurePoints
}

func (l *line) point() uint8 {
	if l.Known <= 0 {
		return api.UnknownPoint
	}
	return uint8(min(math.Round(l.Sum/l.Known.Seconds()), api.UnknownPoint-1))
}

// halve makes one point of two. What is known of one of them stands for both.
func (l *line) halve() {
	for i := range len(l.Points) / 2 {
		a, b := l.Points[2*i], l.Points[2*i+1]
		switch {
		case a == api.UnknownPoint:
			a = b
		case b != api.UnknownPoint:
			a = uint8((int(a) + int(b) + 1) / 2)
		}
		l.Points[i] = a
	}
	l.Points = l.Points[:len(l.Points)/2]
}

// series is that with the point under way, nil: there is none yet.
func (t *track) series() *api.MeasureSeries {
	use, memory := t.Use.upToNow(), t.Memory.upToNow()
	if len(use) == 0 {
		return nil
	}
	return &api.MeasureSeries{Step: t.Step.Seconds(), Use: use, Memory: memory}
}

func (l *line) upToNow() api.Points {
	out := append(api.Points(nil), l.Points...)
	if l.Open > 0 {
		out = append(out, l.point())
	}
	return out
}
