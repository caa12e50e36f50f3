package rule

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/api/bound"
)

func asked() *api.SubmitRequest {
	return &api.SubmitRequest{Spec: api.Spec{Name: "train", Partition: "gpu", Size: 2, Launch: api.LaunchBatch, CPUsPerRank: 3,
		TimeLimit: 90 * time.Minute, Script: []byte("#!/bin/sh\n"), Env: []string{api.Pack("A=\xff")}, WorkDir: "/home/ada",
		Notice: &api.Notice{Signal: "USR1", Lead: time.Minute, Scope: api.ScopeRanks}, Words: []string{"--mem=1G"},
		Asked: &api.Asked{MemoryPerNode: 1 << 30}, AsAsked: api.AsAsked{Comment: "x"}}}
}

// TestQuestion: it has what was asked for and nothing else, in seconds, with the bytes of texts.
func TestQuestion(t *testing.T) {
	q := Ask(asked(), []api.Partition{{Name: "gpu", Default: true, MaxTime: time.Hour}})
	b, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	job := got["job"].(map[string]any)
	for name, want := range map[string]any{"name": "train", "time_limit_seconds": 5400.0, "cpus_per_rank": 3.0, "comment": "x", "script": nil,
		"hold": nil, "notice": map[string]any{"signal": "USR1", "lead_seconds": 60.0, "scope": "ranks"}, "env": []any{"A=\uFFFD"}} {
		if !reflect.DeepEqual(job[name], want) {
			t.Errorf("%s: %v, want %v", name, job[name], want)
		}
	}
	if got["script"] != "#!/bin/sh\n" || !strings.Contains(string(b), `"partitions":[{"name":"gpu","default":true,"max_time_seconds":3600}]`) {
		t.Errorf("%s", b)
	}
}

// TestEveryFieldOfTheQuestion: whatever a submission may hold can be asked about, and no time goes out in nanoseconds.
func TestEveryFieldOfTheQuestion(t *testing.T) {
	for _, f := range fields(reflect.TypeFor[api.Spec]()) {
		if strings.HasSuffix(f.name, "_ns") {
			t.Errorf("%s is in nanoseconds", f.name)
		}
	}
	for _, name := range Fields {
		if !slices.ContainsFunc(fields(reflect.TypeFor[api.Spec]()), func(f field) bool { return f.name == name }) {
			t.Errorf("%s can be changed and is no field", name)
		}
	}
	for _, name := range worded {
		if !slices.Contains(Fields, name) {
			t.Errorf("%s is said in words and can't be changed", name)
		}
	}
}

// TestEveryListedField: each is changed and noted, and null takes each back.
func TestEveryListedField(t *testing.T) {
	values := map[reflect.Kind]string{reflect.String: `"v"`, reflect.Bool: "true", reflect.Int: "7", reflect.Int64: "7", reflect.Slice: `["v"]`,
		reflect.Pointer: "7"}
	special := map[string]string{"begin": `"2027-01-02T03:04:05Z"`, "deadline": `"2027-01-02T03:04:05Z"`,
		"pools": `[{"kind":"licence","name":"a","count":2}]`, "notify": `[{"target":"chat","types":["END"]}]`}
	for _, name := range Fields {
		f := fields(reflect.TypeFor[api.Spec]())[slices.IndexFunc(fields(reflect.TypeFor[api.Spec]()), func(f field) bool { return f.name == name })]
		value := special[name]
		if value == "" {
			value = values[reflect.TypeFor[api.Spec]().FieldByIndex(f.index).Type.Kind()]
		}
		s := &api.Spec{Words: []string{"--x"}}
		did, err := answer(t, `{"change":{"`+name+`":`+value+`}}`).Apply(s)
		if err != nil || len(did) != 1 || did[0].Field != name || did[0].From != "" || did[0].To == "" {
			t.Errorf("%s=%s: %+v, %v", name, value, did, err)
			continue
		}
		if known := s.Words != nil; known == slices.Contains(worded, name) {
			t.Errorf("%s: the words are %v", name, s.Words)
		}
		if err := bound.Check(s); err != nil {
			t.Errorf("%s=%s: %v", name, value, err)
		}
		if did, err = answer(t, `{"change":{"`+name+`":null}}`).Apply(s); err != nil || len(did) != 1 || did[0].To != "" {
			t.Errorf("%s=null: %+v, %v", name, did, err)
		}
	}
	if got := api.RuleText([]api.RuleChange{{Field: "a", To: "1"}, {Field: "b", From: "1"}, {Field: "c", From: "1", To: "2"}}); got != "a to 1, b from 1 to nothing, c from 1 to 2" {
		t.Error(got)
	}
}

func answer(t *testing.T, text string) *Answer {
	t.Helper()
	a, err := Parse([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return a
}

// TestMemoryInNewWords: what the script is told of memory is not what was asked for before.
func TestMemoryInNewWords(t *testing.T) {
	s := asked().Spec
	before := s.Asked
	if _, err := answer(t, `{"change":{"memory_per_rank":1048576}}`).Apply(&s); err != nil || s.Asked.MemoryPerNode != 0 || s.Words != nil ||
		before.MemoryPerNode == 0 {
		t.Errorf("%+v, %v", s.Asked, err)
	}
}

// TestAnswersThatAreNotUnderstood change nothing and say what is wrong.
func TestAnswersThatAreNotUnderstood(t *testing.T) {
	for text, want := range map[string]string{
		"":                                       "answered nothing",
		" \n":                                    "answered nothing",
		"no":                                     "can't be read",
		"[]":                                     "can't be read",
		`{"change":`:                             "can't be read",
		`{"changes":{}}`:                         "unknown field",
		`{} {}`:                                  "goes on",
		`{}x`:                                    "goes on",
		`{"refuse":"no","change":{"hold":true}}`: "both refuses",
		`{"refuse":` + strings.Repeat("[", 100) + `}`:             "can't be read",
		`{"message":"` + strings.Repeat("x", maxText+1) + `"}`:    "1025 bytes",
		`{"change":{"hodl":true}}`:                                "did it mean hold?",
		`{"change":{"uid":0}}`:                                    "which no job has",
		`{"change":{"script":"x"}}`:                               "which a rule can't",
		`{"change":{"size":1}}`:                                   "which a rule can't",
		`{"change":{"env":[]}}`:                                   "which a rule can't",
		`{"change":{"ruled":[]}}`:                                 "which a rule can't",
		`{"change":{"cron":null}}`:                                "which a rule can't",
		`{"change":{"hold":"yes"}}`:                               "changes hold to",
		`{"change":{"time_limit_seconds":"1:00"}}`:                "want a number of seconds",
		`{"change":{"time_limit_seconds":1e300}}`:                 "want seconds",
		`{"change":{"time_limit_seconds":-7}}`:                    "want seconds",
		`{"change":{"begin":"tomorrow"}}`:                         "changes begin",
		`{"change":{"pools":[{"kind":"licence","nme":"a"}]}}`:     "unknown field",
		`{"change":{"partition":["a"]}}`:                          "changes partition",
		`{"change":{"partition":"a","name":"b","nice":"\u0000"}}`: "changes nice",
	} {
		s := asked().Spec
		a, err := Parse([]byte(text))
		if err == nil {
			_, err = a.Apply(&s)
		}
		if err == nil || !strings.Contains(err.Error(), want) || !reflect.DeepEqual(s, asked().Spec) || strings.Contains(err.Error(), "Go ") {
			t.Errorf("%.60s: %v, want %q; %+v", text, err, want, s)
		}
	}
}

// TestNothingIsChanged: what says so, and what says the same as it was.
func TestNothingIsChanged(t *testing.T) {
	for _, text := range []string{"{}", `{"change":{}}`, `{"change":null}`, `{"change":{"name":"train","time_limit_seconds":5400,"hold":false}}`,
		`{"message":"hello"}`} {
		s := asked().Spec
		if did, err := answer(t, text).Apply(&s); did != nil || err != nil || !reflect.DeepEqual(s, asked().Spec) {
			t.Errorf("%s: %+v, %v", text, did, err)
		}
	}
	a := answer(t, "{\"refuse\":\" no\\n\\u001b[31m way \"}")
	if a.Refuse != "no [31m way" {
		t.Errorf("%q", a.Refuse)
	}
}

// FuzzAnswer: no answer is more than refused, and what is taken stays within what a submission may hold or is refused by its bounds.
func FuzzAnswer(f *testing.F) {
	f.Add(`{"change":{"nice":4,"pools":[{}],"begin":"2027-01-02T03:04:05Z"}}`)
	f.Add(`{"refuse":"no"}`)
	f.Fuzz(func(t *testing.T, text string) {
		a, err := Parse([]byte(text))
		if err != nil {
			return
		}
		s := asked().Spec
		did, err := a.Apply(&s)
		if err != nil {
			return
		}
		_ = bound.Check(&s)
		if text := api.RuleText(did); strings.ContainsAny(text, "\n\x1b") {
			t.Errorf("%q", text)
		}
	})
}
