package client

import (
	"encoding/json"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"gangd/pkg/api"
)

// byPointer writes itself, by its pointer alone.
type byPointer struct{ N int }

func (p *byPointer) MarshalJSON() ([]byte, error) { return json.Marshal([]int{p.N}) }

type embedded struct {
	E int `json:"e"`
}

// odd is what no request is made of today.
type odd struct {
	Ints     []int             `json:"ints"`
	Bytes    []byte            `json:"bytes,omitempty"`
	Raw      json.RawMessage   `json:"raw,omitempty"`
	Map      map[string]string `json:"map,omitempty"`
	Any      any               `json:"any"`
	Address  netip.Addr        `json:"address"`
	Self     byPointer         `json:"self"`
	SelfPtr  *byPointer        `json:"self_ptr"`
	Time     time.Time         `json:"time,omitzero"`
	TimePtr  *time.Time        `json:"time_ptr,omitzero"`
	Float    float64           `json:"float,omitempty"`
	Unsigned uint64            `json:"unsigned"`
	Pair     [2]string         `json:"pair"`
	Plain    struct{ A, B int }
	Deep     struct {
		embedded
		hidden int
		Quoted int    `json:"quoted,string"`
		Gone   string `json:"-"`
	} `json:"deep"`
	Kept struct {
		N int `json:"n"`
	} `json:"kept,omitempty"`
	Twice **int `json:"twice,omitempty"`
}

// scribble fills a value with this and that, and leaves some of it empty.
func scribble(r *rand.Rand, v reflect.Value, depth int) {
	if !v.CanSet() || r.IntN(3) == 0 || depth == 0 {
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(r.IntN(200) - 100))
	case reflect.Uint, reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(r.IntN(200)))
	case reflect.Float64:
		v.SetFloat(r.NormFloat64())
	case reflect.String:
		v.SetString([]string{"a", "<b> & \"c\"", "\xff\u2028\n", "Ünïcode"}[r.IntN(4)])
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		scribble(r, v.Elem(), depth-1)
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes([]byte(`{"x": [1, 2]}`))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), r.IntN(3), 3))
		for i := range v.Len() {
			scribble(r, v.Index(i), depth-1)
		}
	case reflect.Array:
		for i := range v.Len() {
			scribble(r, v.Index(i), depth-1)
		}
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"k": "v", "<": ">"}))
	case reflect.Interface:
		v.Set(reflect.ValueOf([]any{1.5, "x", nil}))
	case reflect.Struct:
		switch v.Interface().(type) {
		case time.Time:
			v.Set(reflect.ValueOf(time.Unix(r.Int64N(1<<31), 5).UTC()))
		case netip.Addr:
			v.Set(reflect.ValueOf(netip.MustParseAddr("10.1.2.3")))
		default:
			for i := range v.NumField() {
				scribble(r, v.Field(i), depth-1)
			}
		}
	}
}

// TestEncodeIsMarshal: whatever a request holds, it is written as json.Marshal writes it.
func TestEncodeIsMarshal(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		for _, v := range []any{new(api.SubmitRequest), new(api.UpdateRequest), new(api.JobQuery), new(api.HistoryQuery), new(api.StepRequest),
			new(api.ReservationRequest), new(api.CancelRequest), new(api.NodeAction), new(odd)} {
			scribble(r, reflect.ValueOf(v).Elem(), 7)
			want, wantErr := json.Marshal(v)
			got, err := encode(v)
			if (err != nil) != (wantErr != nil) || err == nil && string(got) != string(want) {
				t.Fatalf("%T: %v\n%s\nwant %v\n%s", v, err, got, wantErr, want)
			}
		}
	}
	for _, v := range []any{map[string]int{"a": 1}, "text", 1.5, []string(nil), (*api.JobQuery)(nil), struct{}{}} {
		want, _ := json.Marshal(v)
		if got, err := encode(v); err != nil || string(got) != string(want) {
			t.Errorf("%T: %s, %v, want %s", v, got, err, want)
		}
	}
}
