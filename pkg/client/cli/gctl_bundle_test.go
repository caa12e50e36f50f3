package cli

import (
	"archive/zip"
	"bytes"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/finding"
)

// fill puts a text that names it into every string of a value, and one entry into every list.
func fill(v reflect.Value, name string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("<" + name + ">")
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), name)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), name)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && f.Type != reflect.TypeFor[time.Time]() {
				fill(v.Field(i), name+"."+f.Name)
			}
		}
	}
}

// TestBundleHoldsNothingThatPeopleWrote: of a job whose every text says which it is, a bundle has those that are listed here, and
// of notices and of findings that quote nothing.
func TestBundleHoldsNothingThatPeopleWrote(t *testing.T) {
	f := &finding.Facts{Version: "v1", Now: time.Unix(1e9, 0), Jobs: make([]api.Job, 1), Outbox: &api.OutboxReply{}, Ping: &api.PingReply{},
		Nodes: &api.NodesReply{}}
	fill(reflect.ValueOf(&f.Jobs[0]).Elem(), "job")
	fill(reflect.ValueOf(f.Outbox).Elem(), "outbox")
	f.Outbox.Lines[0].Tries = 1
	f.Jobs[0].State, f.Jobs[0].Reason = api.JobPending, "BadConstraints"
	f.Verify = &api.VerifyReply{Findings: []string{"<verify>"}}
	var b bytes.Buffer
	if err := writeBundle(&b, f, finding.Cluster(f), "host"); err != nil {
		t.Fatal(err)
	}
	in, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	var names []string
	for _, file := range in.File {
		r, err := file.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, file.Name)
		texts[file.Name] = string(text)
	}
	if names[0] != "README.txt" {
		t.Errorf("the table of contents is not the first: %v", names)
	}
	for _, name := range names[1:] {
		if !strings.Contains(texts["README.txt"], name+" ") {
			t.Errorf("the table of contents lacks %s", name)
		}
	}
	all := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(strings.Join([]string{texts["README.txt"], texts["jobs.json"],
		texts["doctor.json"], texts["controller.json"], texts["nodes.json"], texts["reservations.json"]}, "\n"))
	for _, allowed := range []string{"User", "Account", "Partition", "Cause", "Held", "Launch", "Nodes", "Epilog"} {
		all = strings.ReplaceAll(all, "<job."+allowed+">", "")
	}
	all = strings.ReplaceAll(all, "<outbox.Lines.User>", "") // who is not told
	all = strings.ReplaceAll(all, "<outbox.GivenUp.User>", "")
	if at := strings.IndexByte(all, '<'); at >= 0 {
		t.Errorf("a bundle has ...%.200s", all[at:])
	}
}
