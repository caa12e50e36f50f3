package rule

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"gangd/pkg/api"
	"gangd/pkg/core/nearest"
)

// Question is what the program reads.
type Question struct {
	SchemaVersion int            `json:"schema_version"`
	User          string         `json:"user"`
	UID           uint32         `json:"uid"`
	GID           uint32         `json:"gid"`
	Admin         bool           `json:"admin"`
	TestOnly      bool           `json:"test_only"` // nothing is queued
	Update        bool           `json:"update"`    // of a job in the queue, as it would be: the rule allows it or does not
	Job           map[string]any `json:"job"`       // fields of [api.Spec]
	Script        string         `json:"script"`
	Array         *api.Array     `json:"array,omitempty"` // whose elements are asked about once
	Partitions    []Partition    `json:"partitions"`
}

// Partition is what a rule may want to know of one.
type Partition struct {
	Name             string `json:"name"`
	Default          bool   `json:"default"`
	DefaultTimeLimit int64  `json:"default_time_seconds,omitempty"`
	MaxTimeLimit     int64  `json:"max_time_seconds,omitempty"`
}

// Ask is the question about a submission; who asks is filled in by the caller.
func Ask(r *api.SubmitRequest, partitions []api.Partition) *Question {
	s := r.Spec.Unpacked()
	q := &Question{SchemaVersion: api.SchemaVersion, TestOnly: r.TestOnly, Job: map[string]any{}, Script: string(s.Script), Array: r.Array,
		Partitions: []Partition{}}
	for _, f := range fields(reflect.TypeFor[api.Spec]()) {
		if v := reflect.ValueOf(s).Elem().FieldByIndex(f.index); f.name != "script" && !v.IsZero() {
			q.Job[f.name] = inSeconds(v)
		}
	}
	for i := range partitions {
		p := &partitions[i]
		q.Partitions = append(q.Partitions, Partition{p.Name, p.Default, int64(p.DefaultTime / time.Second), int64(p.MaxTime / time.Second)})
	}
	return q
}

// field is one of a struct, by the name that rules know it by.
type field struct {
	name  string
	index []int
}

// fields are those of a struct that travel, and of what is embedded in it.
func fields(t reflect.Type) (out []field) {
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		out = append(out, field{named(name), f.Index})
	}
	return out
}

// named is the name of a field, whose unit is not the one that gangd counts in.
func named(tag string) string {
	if name, ok := strings.CutSuffix(tag, "_ns"); ok {
		return name + "_seconds"
	}
	return tag
}

// inSeconds is a value with its times in seconds.
func inSeconds(v reflect.Value) any {
	switch d := v.Interface().(type) {
	case time.Duration:
		return d.Seconds()
	case *time.Duration:
		return d.Seconds()
	case api.Notice, *api.Notice:
		n := reflect.Indirect(v).Interface().(api.Notice)
		return map[string]any{"signal": n.Signal, "lead_seconds": n.Lead.Seconds(), "scope": n.Scope}
	}
	return v.Interface()
}

// Fields are those of a job that a rule may change, with what they are. Times are in seconds.
var Fields = []string{"name", "partition", "account", "comment", "extra", "constraint", "prefer", "reservation", "node_list", "exclude",
	"switches", "exclusive", "memory_per_rank", "memory_per_node", "tmp_per_node", "gpu_type", "min_nodes", "max_nodes", "pools", "notify",
	"time_limit_seconds", "time_min_seconds", "min_run_seconds", "grace_seconds", "begin", "deadline", "hold", "nice",
	"priority", "no_requeue", "requeue_causes", "max_retries", "backoff_limit", "stall_retries", "stall_timeout_seconds", "gpu_watch",
	"report", "cpu_bind"}

// worded are those of them that a job also says in the words of its options, from which it is asked for anew when one of these
// is changed later: they are not known any more when a rule has changed what they stand for.
var worded = []string{"node_list", "exclude", "switches", "exclusive", "memory_per_rank", "memory_per_node", "tmp_per_node", "gpu_type",
	"min_nodes", "max_nodes", "pools"}

// Answer is what the program wrote.
type Answer struct {
	Change  map[string]json.RawMessage `json:"change"`
	Refuse  string                     `json:"refuse"`  // why the job is not taken; empty: it is
	Message string                     `json:"message"` // for who submits, beside either
}

// What an answer may have.
const (
	MaxAnswer = 64 << 10 // bytes
	maxText   = 1024     // of a sentence
)

// Parse reads an answer.
func Parse(b []byte) (*Answer, error) {
	if len(bytes.TrimSpace(b)) == 0 {
		return nil, errors.New("it answered nothing: want {} for a job that is taken as it is")
	}
	a := &Answer{}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(a); err != nil {
		return nil, fmt.Errorf("its answer can't be read: %w", plain(err))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("its answer goes on behind the first object")
	}
	for _, text := range []*string{&a.Refuse, &a.Message} {
		if *text = sentence(*text); len(*text) > maxText {
			return nil, fmt.Errorf("its answer has a text of %d bytes, at most %d are shown", len(*text), maxText)
		}
	}
	if a.Refuse != "" && len(a.Change) > 0 {
		return nil, errors.New("its answer both refuses the job and changes it")
	}
	return a, nil
}

// plain leaves the names of Go's types out of what a person reads.
func plain(err error) error {
	var of *json.UnmarshalTypeError
	if errors.As(err, &of) {
		return fmt.Errorf("%s: a %s is not what it takes", of.Field, of.Value)
	}
	return err
}

// sentence is a text on one line, fit for anybody's terminal.
func sentence(s string) string {
	return strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "?"), func(r rune) bool { return unicode.IsControl(r) || r == ' ' }), " ")
}

// Apply makes the changes in s and gives them, by field. Where one can't be made, s is as it was.
func (a *Answer) Apply(s *api.Spec) ([]api.RuleChange, error) {
	changed := *s
	var out []api.RuleChange
	all := fields(reflect.TypeFor[api.Spec]())
	for _, name := range slices.Sorted(maps.Keys(a.Change)) {
		if !slices.Contains(Fields, name) {
			return nil, unknown(name, all)
		}
		f := all[slices.IndexFunc(all, func(f field) bool { return f.name == name })]
		v := reflect.ValueOf(&changed).Elem().FieldByIndex(f.index)
		was := reflect.New(v.Type()).Elem()
		was.Set(v)
		if err := set(v, a.Change[name]); err != nil {
			return nil, fmt.Errorf("it changes %s to %s: %w", name, clip(string(a.Change[name])), plain(err))
		}
		if reflect.DeepEqual(was.Interface(), v.Interface()) {
			continue
		}
		out = append(out, api.RuleChange{Field: name, From: text(was), To: text(v)})
		if slices.Contains(worded, name) {
			changed.Words = nil
		}
		if strings.HasPrefix(name, "memory_per_") && changed.Asked != nil {
			asked := *changed.Asked
			asked.MemoryPerNode, asked.MemoryPerCPU, asked.MemoryPerGPU = 0, 0, 0
			changed.Asked = &asked
		}
	}
	*s = changed
	return out, nil
}

// unknown says why a field is not one that can be changed.
func unknown(name string, all []field) error {
	for _, f := range all {
		if f.name == name || name == "script" {
			return fmt.Errorf("it changes %s, which a rule can't", name)
		}
	}
	if near := nearest.Of(name, Fields); near != "" {
		return fmt.Errorf("it changes %q, which no job has: did it mean %s?", clip(name), near)
	}
	return fmt.Errorf("it changes %q, which no job has", clip(name))
}

// set gives a field the value that JSON says; null: that of a job that does not ask for it.
func set(v reflect.Value, raw json.RawMessage) error {
	fresh := reflect.New(v.Type())
	switch v.Interface().(type) {
	case time.Duration:
		var seconds float64
		if err := json.Unmarshal(raw, &seconds); err != nil {
			return errors.New("want a number of seconds")
		}
		if seconds < -1 || seconds > 1e9 {
			return errors.New("want seconds from 0 to 1000000000")
		}
		d := time.Duration(seconds * float64(time.Second))
		if seconds == -1 {
			d = api.WatchdogOff
		}
		fresh.Elem().Set(reflect.ValueOf(d))
	default:
		d := json.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields()
		if err := d.Decode(fresh.Interface()); err != nil {
			return err
		}
	}
	v.Set(fresh.Elem())
	return nil
}

// text is a value as people read it; empty: it was not asked for.
func text(v reflect.Value) string {
	if v.IsZero() {
		return ""
	}
	value := inSeconds(v)
	if s, ok := value.(string); ok {
		return clip(s)
	}
	b, err := json.Marshal(value)
	if err != nil {
		return "?" // a time out of JSON's range, which is refused when the whole of the job is looked at
	}
	return clip(strings.Trim(string(b), `"`))
}

// clip keeps a value fit for a line.
func clip(s string) string {
	if r := []rune(sentence(s)); len(r) > 120 {
		return string(r[:119]) + "…"
	}
	return sentence(s)
}
