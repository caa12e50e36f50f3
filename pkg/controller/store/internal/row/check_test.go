package row

import (
	"fmt"
	"math"
	"reflect"
	"testing"
	"time"
)

// checks are those of all kinds of rows.
var checks = map[string]func([]byte) error{"job": CheckJob, "rank": CheckRank, "epoch": CheckEpoch, "node": CheckNode,
	"event": CheckEvent, "spec": CheckSpec, "step": CheckStep, "measure": CheckMeasure, "reservation": CheckReservation,
	"letter": CheckLetter, "partition": CheckPartition, "crontab": CheckCrontab}

// TestUnreadableRows: what is no row at all passes for none of any kind.
func TestUnreadableRows(t *testing.T) {
	for kind, check := range checks {
		for _, data := range []string{"", "{", "[1]", `"text"`} {
			if check([]byte(data)) == nil {
				t.Errorf("%q passes for a %s", data, kind)
			}
		}
	}
}

// TestImpossibleJobs: the row of a job is in itself possible, up to the last number of each range.
func TestImpossibleJobs(t *testing.T) {
	for data, want := range map[string]string{
		`{"size":1,"members":[{"ranks":[0]}]}`:                 "",
		`{"size":65536,"members":[{"ranks":[65535]}]}`:         "",
		`{"size":1,"time_limit":-1}`:                           "",
		`{"size":0}`:                                           "size 0: want 1 to 65536",
		`{"size":65537}`:                                       "size 65537: want 1 to 65536",
		`{"size":1,"time_limit":-2}`:                           "time_limit -2 ns",
		`{"size":1,"epoch":-1}`:                                "epoch -1, next_step 0",
		`{"size":1,"next_step":-1}`:                            "epoch 0, next_step -1",
		`{"size":2,"members":[{"ranks":[0]},{"ranks":[1,2]}]}`: "rank 2 in a gang of 2",
		`{"size":2,"members":[{"ranks":[-1]}]}`:                "rank -1 in a gang of 2",
		`{"size":1,"priority":9007199254740993}`:               ".Priority: 9007199254740993",
	} {
		got := ""
		if err := CheckJob([]byte(data)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", data, got, want)
		}
	}
}

func TestJobSize(t *testing.T) {
	for data, want := range map[string]string{`{"size":3,"epoch":2}`: "3 2 false", `{"size":1,"verdict":{}}`: "1 0 true"} {
		size, epoch, over := JobSize([]byte(data))
		if got := fmt.Sprint(size, epoch, over); got != want {
			t.Errorf("%s: %s, want %s", data, got, want)
		}
	}
}

// TestImpossibleValues: each bound is itself possible, what is beyond is named by where it is.
func TestImpossibleValues(t *testing.T) {
	type inner struct{ N int }
	type all struct {
		At    time.Time
		For   time.Duration
		N     int64
		U     uint64
		F     float64
		To    *inner
		Any   any
		List  []inner
		Names []string
		Bytes []byte
		Of    map[string]inner
	}
	const most = 1 << 53
	for _, c := range []struct {
		value all
		want  string
	}{
		{all{At: time.Unix(0, 0), For: mostDuration, N: most, U: 1 << 62, F: most}, ""},
		{all{At: newest, For: -mostDuration, N: -most, F: -most, To: &inner{most}, Any: inner{-most}, List: []inner{{1}}, Of: map[string]inner{"a": {1}}}, ""},
		{all{Names: []string{"a"}, Bytes: []byte{1}}, ""},
		{all{At: time.Unix(0, -1).UTC()}, ".At: 1969-12-31 23:59:59.999999999 +0000 UTC"},
		{all{At: newest.Add(1)}, ".At: 9999-12-31 23:59:59.000000001 +0000 UTC"},
		{all{For: mostDuration + 1}, ".For: 87600h0m0.000000001s"},
		{all{For: -mostDuration - 1}, ".For: -87600h0m0.000000001s"},
		{all{N: most + 1}, ".N: 9007199254740993"},
		{all{N: -most - 1}, ".N: -9007199254740993"},
		{all{U: 1<<62 + 1}, ".U: 4611686018427387905"},
		{all{F: most + 2}, ".F: 9.007199254740994e+15"},
		{all{F: math.NaN()}, ".F: NaN"},
		{all{To: &inner{most + 1}}, ".To.N: 9007199254740993"},
		{all{Any: inner{most + 1}}, ".Any.N: 9007199254740993"},
		{all{List: []inner{{1}, {most + 1}}}, ".List[1].N: 9007199254740993"},
		{all{Of: map[string]inner{"a": {most + 1}}}, ".Of[a].N: 9007199254740993"},
	} {
		got := ""
		if err := possible(reflect.ValueOf(c.value), ""); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%+v: %q, want %q", c.value, got, c.want)
		}
	}
}
