package api

import (
	"encoding/json"
	"strings"
	"testing"
)

// What is unknown is null in JSON and back, and 0 stays 0.
func TestPoints(t *testing.T) {
	b, err := json.Marshal(MeasureSeries{Step: 2, Use: Points{0, UnknownPoint, 100}})
	if want := `{"step_seconds":2,"use":[0,null,100],"memory":[]}`; err != nil || string(b) != want {
		t.Fatalf("%s %v", b, err)
	}
	var s MeasureSeries
	if err := json.Unmarshal(b, &s); err != nil || len(s.Use) != 3 || s.Use[0] != 0 || s.Use[1] != UnknownPoint || s.Use[2] != 100 {
		t.Fatalf("%v %v", s, err)
	}
	if err := json.Unmarshal([]byte("["+strings.Repeat("1,", MeasurePoints)+"1]"), &s.Use); err == nil {
		t.Error("a series without a bound was taken")
	}
	for _, bad := range []string{`"x"`, `[256]`, `[-1]`, `[1.5]`} {
		if json.Unmarshal([]byte(bad), &s.Use) == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}

// A sum and what is taken from it come out even in every figure.
func TestLedgerFigures(t *testing.T) {
	var a, b LedgerFigures
	n := int64(0)
	a.Each(&b, func(x, _ *int64) { n++; *x = n })
	b.Add(a)
	b.Add(a)
	b.Sub(a)
	if a != b || n != 14 || b.StartCardMS != 14 || b.Attempts != 1 {
		t.Errorf("%+v %+v", a, b)
	}
}

func TestLedgerBy(t *testing.T) {
	k := LedgerKey{Day: "2026-11-23", User: "ada", Account: "vision", Partition: "gpu", CardType: "H200", Cause: CauseCrash}
	if got := k.By(LedgerBy[:1]); got != (LedgerKey{Day: "2026-11-23"}) {
		t.Errorf("%+v", got)
	}
	if got := k.By([]string{"month", "user"}); got != (LedgerKey{Day: "2026-11", User: "ada"}) {
		t.Errorf("%+v", got)
	}
	all := k
	if got := k.By([]string{"day", "user", "account", "partition", "card_type", "cause"}); got != all {
		t.Errorf("%+v", got)
	}
}
