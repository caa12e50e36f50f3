package row

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/gang"
	fold "gangd/pkg/core/measure"
)

// fill sets every exported field to something that is not zero, so that a field which a
// row type lacks is seen missing after the round trip.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Date(2026, 10, 25, 2, 30, 0, *n, time.FixedZone("", -5400))))
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), n)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(v.Index(i), n)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), n)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, val := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, n)
		fill(val, n)
		v.SetMapIndex(key, val)
	case reflect.String:
		v.SetString(fmt.Sprint("text ", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint8:
		v.SetUint(uint64(*n % 256))
	case reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(*n))
	case reflect.Int8, reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Float64:
		v.SetFloat(float64(*n) / 4)
	default:
		panic(v.Kind().String())
	}
}

// draw sets every exported field to nothing, or to what is odd, or the least or the most that a row may have.
func draw(v reflect.Value, r *rand.Rand) {
	pick := func(all ...int64) int64 { return all[r.IntN(len(all))] }
	switch v.Kind() {
	case reflect.Pointer:
		if r.IntN(2) == 0 {
			v.Set(reflect.New(v.Type().Elem()))
			draw(v.Elem(), r)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf([]time.Time{{}, oldest, newest.In(time.FixedZone("", -5400)), time.Unix(r.Int64N(1<<35), r.Int64N(1e9))}[r.IntN(4)]))
			return
		}
		for i := range v.NumField() {
			f, in := v.Type().Field(i), v.Field(i)
			if f.Anonymous && in.Kind() == reflect.Pointer { // a part of it, which it has
				in.Set(reflect.New(in.Type().Elem()))
				in = in.Elem()
			}
			if f.IsExported() {
				draw(in, r)
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			draw(v.Index(i), r)
		}
	case reflect.Slice:
		n := r.IntN(3)
		if v.Type() == reflect.TypeFor[api.Points]() {
			n = max(n, 1) // on the wire those of none are not nil
		}
		if n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				draw(v.Index(i), r)
			}
		}
	case reflect.Map:
		for range r.IntN(3) {
			if v.IsNil() {
				v.Set(reflect.MakeMap(v.Type()))
			}
			key, val := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			draw(key, r)
			draw(val, r)
			v.SetMapIndex(key, val)
		}
	case reflect.String:
		v.SetString([]string{"", "a", `"`, `\`, `]},{["`, `,"key":"x","name":`, "<&>\n\x00\u2028", "\u00e4\U0001f642", "null"}[r.IntN(9)])
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Uint8:
		v.SetUint(uint64(pick(0, 1, math.MaxUint8)))
	case reflect.Uint32:
		v.SetUint(uint64(pick(0, 1, math.MaxUint32)))
	case reflect.Uint64:
		v.SetUint(uint64(pick(0, 1, 1<<62)))
	case reflect.Int8:
		v.SetInt(pick(0, 1, math.MaxInt8, math.MinInt8))
	case reflect.Int, reflect.Int64:
		most := int64(mostNumber)
		if v.Type() == reflect.TypeFor[time.Duration]() {
			most = int64(mostDuration)
		}
		v.SetInt(pick(0, 1, most, -most))
	case reflect.Float64:
		v.SetFloat([]float64{0, 0.1, mostNumber, -mostNumber}[r.IntN(4)])
	default:
		panic(v.Kind().String())
	}
}

func made[T any](set func(reflect.Value)) *T {
	var v T
	set(reflect.ValueOf(&v).Elem())
	return &v
}

func filling(v reflect.Value) {
	n := 0
	fill(v, &n)
}

func filled[T any]() *T { return made[T](filling) }

func back[T any](t *testing.T, enc []byte, err error, decode func([]byte) (T, error), want T) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	got, err := decode(enc)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got, cmpopts.IgnoreUnexported(cluster.Node{})); d != "" {
		t.Errorf("(-was +came back)\n%s\nrow: %s", d, enc)
	}
}

func TestEveryFieldComesBack(t *testing.T) { comeBack(t, filling) }

// TestAnyValueComesBack: whatever is in it, and whatever is not; and what may be is not taken for impossible.
func TestAnyValueComesBack(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 0))
		comeBack(t, func(v reflect.Value) { draw(v, r) })
		if t.Failed() {
			t.Fatalf("draw %d", seed)
		}
	}
}

// comeBack writes a value of each kind, and reads it.
func comeBack(t *testing.T, set func(reflect.Value)) {
	t.Run("job", func(t *testing.T) {
		j := made[gang.Job](set)
		j.Spec, j.TextBytes = nil, 0 // a row of its own
		j.Hopeless = false           // judged anew
		for i := range j.Ranks {
			j.Ranks[i] = gang.Rank{State: api.RankBlocked} // likewise
		}
		enc, err := Job(j)
		back(t, enc, err, func(b []byte) (*gang.Job, error) { return DecodeJob(j.ID, j.SpecHash, b) }, j)
		if key := JobKey(enc); key != j.Key {
			t.Errorf("key %q, want %q", key, j.Key)
		}
		for _, key := range []string{"", "0 a\"b<\n"} {
			j.Key, j.Name = key, `,"key":"x"`
			if enc, err = Job(j); err != nil || JobKey(enc) != key {
				t.Errorf("key %q, want %q (%v)", JobKey(enc), key, err)
			}
		}
	})
	t.Run("rank", func(t *testing.T) {
		r := made[gang.Rank](set)
		enc, err := Rank(r)
		back(t, enc, err, func(b []byte) (gang.Rank, error) { return DecodeRank(1, 2, b) }, *r)
		mayBe(t, "rank", enc)
	})
	t.Run("epoch", func(t *testing.T) {
		e := made[gang.EpochRow](set)
		enc, err := Epoch(e)
		back(t, enc, err, func(b []byte) (gang.EpochRow, error) { return DecodeEpoch(e.Job, e.Epoch, b) }, *e)
		mayBe(t, "epoch", enc)
	})
	t.Run("measure", func(t *testing.T) {
		m := made[api.Measure](set)
		enc, err := Measure(m)
		back(t, enc, err, func(b []byte) (*api.Measure, error) { return DecodeMeasure(1, b) }, m)
		mayBe(t, "measure", enc)
	})
	t.Run("node", func(t *testing.T) {
		n := made[gang.Node](set)
		enc, err := Node(n)
		back(t, enc, err, func(b []byte) (*gang.Node, error) { return DecodeNode(n.Name, b) }, n)
		mayBe(t, "node", enc)
	})
	t.Run("event", func(t *testing.T) {
		e := made[api.Event](set)
		enc, err := Event(e)
		back(t, enc, err, func(b []byte) (api.Event, error) { return DecodeEvent(e.Seq, b) }, *e)
		mayBe(t, "event", enc)
	})
	t.Run("letter", func(t *testing.T) {
		l := made[api.Letter](set)
		enc, err := Letter(l)
		back(t, enc, err, func(b []byte) (*api.Letter, error) { return DecodeLetter(l.ID, b) }, l)
		mayBe(t, "letter", enc)
	})
	t.Run("step", func(t *testing.T) {
		st := made[api.Step](set)
		enc, err := Step(st)
		back(t, enc, err, func(b []byte) (api.Step, error) { return DecodeStep(1, b) }, *st)
		mayBe(t, "step", enc)
	})
	t.Run("reservation", func(t *testing.T) {
		r := made[api.Reservation](set)
		enc, err := Reservation(r)
		r.Active = false // for a clock to say
		back(t, enc, err, func(b []byte) (*api.Reservation, error) { return DecodeReservation(r.Name, b) }, r)
		mayBe(t, "reservation", enc)
	})
	t.Run("partition", func(t *testing.T) {
		c := made[api.PartitionChange](set)
		enc, err := Partition(c)
		back(t, enc, err, func(b []byte) (*api.PartitionChange, error) { return DecodePartition(c.Name, b) }, c)
		mayBe(t, "partition", enc)
	})
	t.Run("crontab", func(t *testing.T) {
		c := made[api.Crontab](set)
		enc, err := Crontab(c)
		back(t, enc, err, func(b []byte) (*api.Crontab, error) { return DecodeCrontab(c.User, b) }, c)
		mayBe(t, "crontab", enc)
	})
	t.Run("spec", func(t *testing.T) {
		s := made[api.Spec](set)
		enc, err := Spec(s)
		back(t, enc, err, func(b []byte) (*api.Spec, error) { return DecodeSpec("h", b) }, s)
		mayBe(t, "spec", enc)
	})
}

// TestRowsOfTheReleaseBefore: what v0.9.0 wrote is read, and nothing of it is lost when it is written again.
func TestRowsOfTheReleaseBefore(t *testing.T) {
	for kind, again := range map[string]func(data []byte) ([]byte, error){
		"job": func(data []byte) ([]byte, error) {
			j, err := DecodeJob(7, "h", data)
			if err != nil {
				return nil, err
			}
			return Job(j)
		},
		"rank": func(data []byte) ([]byte, error) {
			r, err := DecodeRank(7, 1, data)
			if err != nil {
				return nil, err
			}
			return Rank(&r)
		},
		"epoch": func(data []byte) ([]byte, error) {
			e, err := DecodeEpoch(7, 1, data)
			if err != nil {
				return nil, err
			}
			return Epoch(&e)
		},
		"node": func(data []byte) ([]byte, error) {
			n, err := DecodeNode("n1", data)
			if err != nil {
				return nil, err
			}
			return Node(n)
		},
	} {
		data, err := os.ReadFile("testdata/v0.9.0-" + kind + ".json")
		if err != nil {
			t.Fatal(err)
		}
		out, err := again(data)
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		var was, is map[string]any
		if err := errors.Join(json.Unmarshal(data, &was), json.Unmarshal(out, &is)); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(was, is); d != "" {
			t.Errorf("%s (-v0.9.0 +now):\n%s", kind, d)
		}
	}
}

// TestEveryFieldHasAName: what is in a row has its name there in a tag, so that a renamed field of Go loses nothing.
func TestEveryFieldHasAName(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var walk func(of reflect.Type)
	walk = func(of reflect.Type) {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Array || of.Kind() == reflect.Map {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct || seen[of] || of == reflect.TypeFor[time.Time]() || of == reflect.TypeFor[cluster.Node]() {
			return // what a node has is written by names of resources
		}
		seen[of] = true
		for i := range of.NumField() {
			f := of.Field(i)
			if f.IsExported() && !f.Anonymous && f.Tag.Get("json") == "" {
				t.Errorf("%v.%s has no name in rows", of, f.Name)
			}
			walk(f.Type)
		}
	}
	for _, of := range []reflect.Type{reflect.TypeFor[gang.Job](), reflect.TypeFor[gang.EpochRow](), reflect.TypeFor[gang.Node](),
		reflect.TypeFor[resources](), reflect.TypeFor[measure]()} {
		walk(of)
	}
}

func mayBe(t *testing.T, kind string, enc []byte) {
	t.Helper()
	if err := checks[kind](enc); err != nil {
		t.Errorf("%v\n%s", err, enc)
	}
}

// TestZeroComesBack: a zero that means something (exit code, trigger rank 0) is not lost
// by leaving fields out.
func TestZeroComesBack(t *testing.T) {
	j := &gang.Job{Array: &gang.ArrayInfo{}, Wishes: new(gang.Wishes), Past: &gang.Past{Setbacks: gang.Setbacks{Verdict: &gang.Verdict{}}, Attempt: gang.Attempt{Drain: &gang.Drain{}}}}
	enc, err := Job(j)
	back(t, enc, err, func(b []byte) (*gang.Job, error) { return DecodeJob(0, "", b) }, j)
	e := gang.EpochRow{}
	enc, err = Epoch(&e)
	back(t, enc, err, func(b []byte) (gang.EpochRow, error) { return DecodeEpoch(0, 0, b) }, e)
}

// A member and a card are 2 KB at most, whatever was seen of them.
func TestMeasureIsSmall(t *testing.T) {
	worst := 123456789.123
	bytes := int64(1) << 46
	f := &api.Figure{Seconds: 9999999.123, Mean: 99.123, Max: 99.999, Buckets: slices.Repeat([]float64{999999.9}, api.MeasureBuckets)}
	plain := &api.Figure{Seconds: 9999999.123, Mean: 123456789012.123, Max: 123456789012}
	s := &api.MeasureSeries{Step: 65536, Use: make(api.Points, api.MeasurePoints), Memory: make(api.Points, api.MeasurePoints)}
	m := &api.Measure{Node: "gpu-node-0123", Seconds: worst, CPUs: 128, Memory: bytes, CPUSeconds: &worst, MemoryPeak: &bytes, IOBytes: &bytes, CPU: f, Resident: plain, Series: s,
		Ranks: &api.RankUse{Ranks: 100, CPUSeconds: worst, MinCPU: worst, MinCPURank: 100, MaxRSS: bytes, MaxRSSRank: 100, SumRSS: bytes},
		Cards: []api.CardMeasure{{UUID: "GPU-4d1d43f7-ba58-4d1b-ac34-52a8fb2c9ac2", Index: 10, Model: "NVIDIA H200 SXM 141GB", VRAMBytes: bytes, VRAMAsked: bytes, Utilization: f, VRAM: plain, Power: plain,
			Joules: &worst, IdleSeconds: &worst, Series: s}}}
	with, err := Measure(m)
	if err != nil || len(with) > 2*1024 {
		t.Errorf("a member with a card: %d bytes, %v", len(with), err)
	}
}

// TestBlank: only what DecodeJob makes of a missing row may have none.
func TestBlank(t *testing.T) {
	if r := (gang.Rank{State: api.RankBlocked}); !Blank(&r) {
		t.Error("a blocked rank is not blank")
	}
	for _, s := range []cluster.Slot{{Node: "n1"}, {Cards: []string{"GPU-1"}}} {
		if Blank(&gang.Rank{State: api.RankBlocked, Slot: s}) {
			t.Errorf("a rank at %+v is blank", s)
		}
	}
	rv := reflect.TypeFor[gang.Rank]()
	for i := range rv.NumField() {
		r := gang.Rank{State: api.RankBlocked}
		n := 0
		fill(reflect.ValueOf(&r).Elem().Field(i), &n)
		if Blank(&r) {
			t.Errorf("a rank with %s set is blank", rv.Field(i).Name)
		}
	}
}

// TestBookingOfAnEpoch: it is found in the row, if it is there.
func TestBookingOfAnEpoch(t *testing.T) {
	e := filled[gang.EpochRow]()
	for range 2 {
		enc, err := Epoch(e)
		back(t, enc, err, EpochBooking, e.Booking)
		e.Booking = nil
	}
	if _, err := EpochBooking([]byte("{")); err == nil {
		t.Error("half a row is read")
	}
}

// TestKeyOfAHeader: it stands before the name, and there alone.
func TestKeyOfAHeader(t *testing.T) {
	for data, want := range map[string]string{
		`{"size":1,"key":"a","name":"b"}`: "a", `{"size":1,"name":"b","key":"a"}`: "", `{"size":1,"key":"a"}`: "", `{"size":1,"key":7,"name":"b"}`: "", `{"size":1,"name":"b"}`: "", "": "",
	} {
		if got := JobKey([]byte(data)); got != want {
			t.Errorf("%s: %q, want %q", data, got, want)
		}
	}
}

// TestWaitingJobsShare what none of them has.
func TestWaitingJobsShare(t *testing.T) {
	a, errA := DecodeJob(1, "h", []byte(`{"size":1,"name":"a"}`))
	b, errB := DecodeJob(2, "h", []byte(`{"size":1,"name":"b"}`))
	if errA != nil || errB != nil || a.Past != b.Past || a.Wishes != b.Wishes {
		t.Errorf("%v, %v: past %p and %p, wishes %p and %p", errA, errB, a.Past, b.Past, a.Wishes, b.Wishes)
	}
}

func TestBrokenRowsAreNamed(t *testing.T) {
	_, job := DecodeJob(7, "h", []byte("{"))
	_, large := DecodeJob(7, "h", []byte(`{"size":65537}`))
	_, rank := DecodeRank(7, 2, []byte("[]"))
	_, epoch := DecodeEpoch(7, 3, []byte("x"))
	_, step := DecodeStep(7, []byte("1"))
	_, measure := DecodeMeasure(7, []byte("1"))
	_, node := DecodeNode("n1", nil)
	_, event := DecodeEvent(9, []byte("1"))
	_, spec := DecodeSpec("abc", []byte("1"))
	_, letter := DecodeLetter(5, []byte("1"))
	_, reservation := DecodeReservation("may", []byte("1"))
	_, partition := DecodePartition("gpu", []byte("1"))
	_, crontab := DecodeCrontab("ada", []byte("1"))
	for name, err := range map[string]error{"row of job 7: unexpected end": job, "row of job 7: size 65537: want at most 65536": large, "row of rank 2 of job 7: ": rank,
		"row of epoch 3 of job 7: ": epoch, "row of a step of job 7: ": step, "row of a measure of job 7: ": measure, "row of node n1: ": node, "row of event 9: ": event,
		"row of spec abc: ": spec, "row of letter 5: ": letter, "row of reservation may: ": reservation, "row of partition gpu: ": partition,
		"row of the cron table of ada: ": crontab} {
		if err == nil || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("error %v does not begin with %q", err, name)
		}
	}
	if j, err := DecodeJob(7, "h", []byte(`{"size":65536}`)); err != nil || len(j.Ranks) != api.MaxGangSize {
		t.Errorf("the largest gang: %v", err)
	}
}

// TestTextComesBack: names are whatever a person typed.
func TestTextComesBack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		j := &gang.Job{Name: rapid.String().Draw(rt, "name"), Wishes: new(gang.Wishes), Past: &gang.Past{}}
		enc, err := Job(j)
		if err != nil {
			rt.Fatal(err)
		}
		got, err := DecodeJob(0, "", enc)
		if err != nil || got.Name != j.Name {
			rt.Fatalf("%q came back as %q, %v", j.Name, got.Name, err)
		}
	})
}

// However long a run was and whatever was seen of it, what is kept of a member takes no more than a KiB, and of each of its cards
// as much again: with a card no more than 2 KiB.
func TestMeasuresAreSmall(t *testing.T) {
	const most = 1 << 10
	rapid.Check(t, func(t *rapid.T) {
		begin := api.Measure{Node: "a-node-with-a-name-of-some-length", CPUs: 512, Memory: 4 << 40}
		cards := rapid.IntRange(0, 8).Draw(t, "cards")
		for i := range cards {
			begin.Cards = append(begin.Cards, api.CardMeasure{UUID: "MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f", Index: i, Model: "NVIDIA H100 80GB HBM3 MIG 1g.10gb", VRAMBytes: 80 << 30, VRAMAsked: 40 << 30})
		}
		f := fold.Begin(begin, 4<<40)
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		longest := time.Duration(rapid.Int64Range(int64(time.Second), int64(time.Hour)).Draw(t, "longest"))
		var at, cpu time.Duration
		for range rapid.IntRange(1, 1000).Draw(t, "looks") {
			span := 1 + time.Duration(r.Int64N(int64(longest)))
			at += span
			cpu += time.Duration(r.Int64N(512 * int64(span)))
			s := fold.Sample{At: at, CPU: cpu, Memory: r.Int64N(4 << 40), Peak: r.Int64N(4 << 40), IO: r.Int64N(1 << 60)}
			for range cards {
				s.Cards = append(s.Cards, fold.CardSample{Utilization: r.IntN(101), VRAM: r.Int64N(80 << 30), Watts: r.IntN(1000)})
			}
			f.Add(s)
		}
		b, err := Measure(f.End(at+time.Second, cpu+time.Second, 4<<40-1, &api.RankUse{Ranks: 512, CPUSeconds: cpu.Seconds(), MinCPU: cpu.Seconds() / 7, MaxRSS: 4<<40 - 1, SumRSS: 4<<40 - 1}))
		if err != nil {
			t.Fatal(err)
		}
		if len(b) > most*(1+cards) {
			t.Fatalf("%d bytes of %d cards:\n%s", len(b), cards, b)
		}
	})
}
