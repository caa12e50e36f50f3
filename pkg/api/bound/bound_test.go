package bound

import (
	"math"
	"strings"
	"testing"
	"time"
)

type inner struct {
	Epoch int    `json:"epoch"`
	Any   string `json:"any" bound:"any"`
}

type outer struct {
	inner
	Plain   int           `json:"plain"`
	Signed  int64         `json:"signed" bound:"-1..65536"`
	Grace   time.Duration `json:"grace_ns"`
	Off     *time.Duration
	Number  uint64            `json:"number"`
	Share   float64           `json:"share"`
	Begin   time.Time         `json:"begin"`
	Name    string            `json:"name" bound:"len=4"`
	Text    string            `json:"text" bound:"text"`
	Env     []string          `json:"env" bound:"n=2 len=3 text"`
	Members []inner           `json:"members"`
	Script  []byte            `json:"script" bound:"n=3"`
	Specs   map[string]*inner `json:"specs"`
	Skipped func()            `json:"-"`
}

func TestCheck(t *testing.T) {
	day := 24 * time.Hour
	ptr := func(d time.Duration) *time.Duration { return &d }
	for name, c := range map[string]struct {
		v    outer
		want string // a part of the error, empty: none
	}{
		"zero":             {},
		"ends":             {v: outer{Plain: maxInt, Signed: -1, Grace: maxDuration, Number: maxUint, Name: "abcd", Text: "a\n\tb", Env: []string{"abc", "a\nb"}}},
		"embedded":         {outer{inner: inner{Epoch: -1}}, "epoch: -1 is out of range: want 0 to 9007199254740992"},
		"any":              {v: outer{inner: inner{Any: "\x00\x1b\n" + strings.Repeat("x", 1<<16)}}},
		"any too long":     {outer{inner: inner{Any: strings.Repeat("x", 1<<20+1)}}, "at most 1048576 bytes"},
		"negative":         {outer{Plain: -1}, "plain: -1 "},
		"above 2^53":       {outer{Plain: maxInt + 1}, "plain: 9007199254740993 "},
		"tag's low end":    {outer{Signed: -2}, "signed: -2 is out of range: want -1 to 65536"},
		"tag's high end":   {outer{Signed: 65537}, "signed: 65537 "},
		"2^63-1 ns":        {outer{Grace: math.MaxInt64}, "grace_ns: 2562047h47m16.854775807s is out of range: want 0s to 87600h0m0s"},
		"without a name":   {outer{Off: ptr(-day)}, "Off: -24h0m0s "},
		"2^64-1":           {outer{Number: math.MaxUint64}, "number: 18446744073709551615 "},
		"no number":        {outer{Share: math.NaN()}, "share: NaN "},
		"negative share":   {outer{Share: -1}, "share: -1 "},
		"year 10000":       {outer{Begin: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}, "a time from 1970 to 9999"},
		"year 1900":        {outer{Begin: time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC)}, "a time from 1970 to 9999"},
		"long name":        {outer{Name: "abcde"}, `name: "abcde" with 5 bytes is out of range: want at most 4 bytes`},
		"escape":           {outer{Name: "a\x1b["}, "without control characters"},
		"C1":               {outer{Name: "a\u009b"}, "without control characters"},
		"NUL in a text":    {outer{Text: "a\x00"}, "without control characters"},
		"long text":        {outer{Text: strings.Repeat("x", 4097)}, "at most 4096 bytes"},
		"many entries":     {outer{Env: []string{"a", "b", "c"}}, "env: 3 entries is out of range: want at most 2"},
		"entry":            {outer{Env: []string{"a", "abcd"}}, `env[1]: "abcd" with 4 bytes`},
		"in a slice":       {outer{Members: []inner{{}, {Epoch: -7}}}, "members[1].epoch: -7 "},
		"bytes":            {outer{Script: []byte("1234")}, "script: 4 bytes is out of range: want at most 3"},
		"in a map":         {outer{Specs: map[string]*inner{"h": {Epoch: -7}}}, `specs["h"].epoch: -7 `},
		"nil in a map":     {v: outer{Specs: map[string]*inner{"h": nil}}},
		"key":              {outer{Specs: map[string]*inner{"\n": nil}}, "without control characters"},
		"entries of a map": {outer{Members: make([]inner, 65537)}, "members: 65537 entries"},
	} {
		err := Check(&c.v)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if err := Check((*outer)(nil)); err != nil {
		t.Errorf("nil: %v", err)
	}
}

// A sum of as many times as any rule adds up still is a time.
func TestDurationsAddUp(t *testing.T) {
	sum := time.Duration(0)
	for range 29 {
		if sum += maxDuration; sum < 0 {
			t.Fatal("29 of the longest times are more than 64 bits hold")
		}
	}
}

func TestWrongTags(t *testing.T) {
	for _, tag := range []string{"len", "len=x", "n=0", "a..b", "words"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%q was read", tag)
				}
			}()
			span(limitsOf(tag), 0, 1, nil)
		}()
	}
}

func BenchmarkCheck(b *testing.B) {
	v := &outer{Env: []string{"a=b", "c=d"}, Members: make([]inner, 64)}
	v.Env = v.Env[:1]
	for b.Loop() {
		if err := Check(v); err != nil {
			b.Fatal(err)
		}
	}
}
