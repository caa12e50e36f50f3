// Package nasty gives tests every list and every text of every request at its largest, filled in several ways that cost
// whoever compares each entry with each job. The types are walked: a field that is new is in it by itself.
package nasty

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"gangd/pkg/api"
)

// Jobs is how many wait while the requests are made: numbers of jobs are among them.
const Jobs = 30_000

// Call is one that has a body.
type Call struct {
	Path string
	Body func() any // a new one, which asks for little and is taken
}

// Calls are all that have lists or texts. n1 is a node, main a partition, job 1 an array of ada's.
func Calls() []Call {
	return []Call{
		{"/v1/jobs", func() any { return &api.SubmitRequest{Spec: Spec()} }},
		{"/v1/query", func() any { return &api.JobQuery{Lines: true} }},
		{"/v1/history", func() any { return &api.HistoryQuery{Since: time.Now().Add(time.Hour)} }},
		{"/v1/hold", func() any { return &api.ActionRequest{} }},
		{"/v1/release", func() any { return &api.ActionRequest{} }},
		{"/v1/requeue", func() any { return &api.ActionRequest{} }},
		{"/v1/update", func() any {
			return &api.UpdateRequest{JobQuery: api.JobQuery{Refs: []api.JobRef{{ID: 3, Index: -1}}}, Nice: new(int64)}
		}},
		{"/v1/rerun", func() any { return &api.RerunRequest{Ref: api.JobRef{ID: 1, Index: 1}} }},
		{"/v1/jobs/1/steps", func() any { return &api.StepRequest{Key: "s"} }},
		{"/v1/nodes/n1/features", func() any { return &api.NodeAction{} }},
		{"/v1/nodes/n1/drain", func() any { return &api.NodeAction{Reason: "fan"} }},
		{"/v1/partitions", func() any { return &api.PartitionRequest{Name: "p"} }},
		{"/v1/partitions/main/update", func() any { return &api.PartitionRequest{} }},
		{"/v1/reservations", func() any {
			day := 24 * time.Hour
			start := time.Now().Add(day)
			return &api.ReservationRequest{Name: "r", Start: &start, Duration: &day, Nodes: &[]string{"n1"}, Users: &[]string{"root"}}
		}},
		{"/v1/crontab", func() any { return &api.CrontabRequest{} }},
		// Last, for it may end the jobs that the others are about.
		{"/v1/cancel", func() any { return &api.CancelRequest{} }},
	}
}

// Spec is a small job.
func Spec() api.Spec {
	return api.Spec{Name: "x", Size: 4, Launch: api.LaunchRanks, CPUsPerRank: 1, WorkDir: "/tmp", Output: "/dev/null",
		Script: []byte("#!/bin/sh\n")}
}

// Field is a list or a text in a body, and a way to fill it.
type Field struct {
	Name    string
	at, way int
	make    func() any
}

// Fields are all of a body's, in each way.
func Fields(make func() any) (out []Field) {
	for at := 0; ; at++ {
		w := walk{at: at, dry: true}
		w.visit(reflect.ValueOf(make()).Elem(), "", "")
		if w.at >= 0 {
			return out // there are no more
		}
		for way := range w.ways {
			out = append(out, Field{fmt.Sprintf("%s way %d", w.field, way), at, way, make})
		}
	}
}

// Body is a body with the field as large as its bound allows.
func (f Field) Body() any {
	body := f.make()
	w := walk{at: f.at, way: f.way}
	w.visit(reflect.ValueOf(body).Elem(), "", "")
	return body
}

// Each calls fn with a body for each of its fields.
func Each(make func() any, fn func(field string, body any)) {
	for _, f := range Fields(make) {
		fn(f.Name, f.Body())
	}
}

// walk fills the field that is at visited ones away.
type walk struct {
	at, way, ways int
	field         string
	dry           bool // nothing is filled
}

// part is a number of a bound tag, or what holds without one.
func part(tag, name string, otherwise int) int {
	for p := range strings.FieldsSeq(tag) {
		if text, ok := strings.CutPrefix(p, name+"="); ok {
			n, _ := strconv.Atoi(text)
			return n
		}
	}
	return otherwise
}

func (n *walk) visit(v reflect.Value, path, tag string) {
	if n.at < 0 {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.Type().Elem() == reflect.TypeFor[time.Time]() {
			return
		}
		was, filled := v.Interface(), n.at
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		if n.visit(v.Elem(), path, tag); n.at >= 0 && filled >= 0 {
			v.Set(reflect.ValueOf(was)) // nothing in it was meant
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() || v.Type() == reflect.TypeFor[api.JobRef]() {
			return
		}
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && f.Tag.Get("json") != "-" {
				n.visit(v.Field(i), path+"."+f.Name, f.Tag.Get("bound"))
			}
		}
	case reflect.String:
		texts := []string{"a|", "main,", "((((", "[a*1&", "@", "\u202e"}
		if strings.Contains(path, "Spec.") && !strings.HasSuffix(path, "Constraint") && !strings.HasSuffix(path, "Prefer") {
			texts = texts[:2] // there are many
		}
		if n.mine(path, len(texts)) && !n.dry {
			most := part(tag, "len", 4096)
			if strings.Contains(tag, "any") {
				most = 1 << 20
			}
			v.SetString(strings.Repeat(texts[n.way], most)[:most/len(texts[n.way])*len(texts[n.way])])
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		if n.mine(path, 4) {
			if n.dry {
				return
			}
			most := part(tag, "n", 65536)
			v.Set(reflect.MakeSlice(v.Type(), most, most))
			for i := range most {
				fill(v.Index(i), strings.ToLower(path[strings.LastIndexByte(path, '.')+1:]), i, n.way)
			}
			return
		}
		// What stands in its elements is visited in one.
		if v.Type().Elem().Kind() == reflect.Struct && v.Type().Elem() != reflect.TypeFor[api.JobRef]() && v.Len() == 0 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fill(v.Index(0), "", 0, 1)
			if n.visit(v.Index(0), path+"[0]", ""); n.at >= 0 {
				v.SetZero()
			}
		}
	}
}

// mine counts a field, and says whether it is the one that is meant.
func (n *walk) mine(path string, ways int) bool {
	n.at--
	if n.at == -1 {
		n.field, n.ways = path, ways
		return true
	}
	return false
}

// known are names that mean something, by the field that they stand in.
var known = map[string]string{"users": "ada", "names": "x", "nodes": "n1", "nodelist": "n1", "exclude": "n1", "partitions": "main",
	"states": "PENDING",
	"flags":  "MAINT", "features": "big", "requeuecauses": "crash", "env": "A=b", "types": "END", "hosts": "127.0.0.1:1"}

// fill makes the i-th element of a list: way 0 each another that means nothing, 1 the same again that means something,
// 2 each another, long, 3 what means something beyond what there is.
func fill(v reflect.Value, field string, i, way int) {
	if v.Type() == reflect.TypeFor[api.JobRef]() {
		refs := []api.JobRef{{ID: int64(1 + i), Index: -1}, {ID: 1, Index: i}, {Index: -1, Last: 1 + i}, {ID: 1 << 40, Index: i}}
		v.Set(reflect.ValueOf(refs[way]))
		return
	}
	switch v.Kind() {
	case reflect.String:
		text := fmt.Sprintf("u%07d", i)
		switch {
		case field == "kind":
			text = string(api.DependencyKinds[i%len(api.DependencyKinds)])
		case way == 1 && known[field] != "":
			text = known[field]
		case way == 2:
			text += strings.Repeat("x", 60)
		case way == 3 && field == "env":
			text += "=" + text
		}
		v.SetString(text)
	case reflect.Int, reflect.Int64, reflect.Int32:
		if v.Type() != reflect.TypeFor[time.Duration]() {
			v.SetInt(int64(1 + i%Jobs))
		} else if way == 2 {
			v.SetInt(int64(time.Minute))
		}
	case reflect.Bool:
		v.SetBool(way == 1)
	case reflect.Struct:
		for k := range v.NumField() {
			if f := v.Type().Field(k); f.IsExported() && v.Field(k).Kind() != reflect.Pointer && f.Type != reflect.TypeFor[time.Time]() {
				fill(v.Field(k), strings.ToLower(f.Name), i, way)
			}
		}
	}
}
