package trace

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestReads(t *testing.T) {
	for _, tt := range []struct {
		name, text, format string
		want               []Job
		notes              []string
	}{
		{"csv", "job_id,user,vc,submit_s,duration_s,gpus,gang,time_limit_s,colour\nb,ann,x,7.5,10,16,2,60,red\na,,,2,3.25,1,,,\n", "csv",
			[]Job{{ID: "a", Duration: 3250 * time.Millisecond, Ranks: 1, Cards: 1},
				{ID: "b", User: "ann", Account: "x", Submit: 5500 * time.Millisecond, Duration: 10 * time.Second, Ranks: 2, Cards: 8, Limit: time.Minute}},
			[]string{"columns not used: colour"}},
		{"shares", "job_id,submit_s,duration_s,gpus,vram_mib,cpu_milli,memory_mib,gpu_model,priority\na,0,1,1,460,6000,12288,T4|P100,2\n", "csv",
			[]Job{{ID: "a", Duration: time.Second, Ranks: 1, Cards: 1, VRAM: 460 << 20, CPUs: 6000, Memory: 12288 << 20, Models: "T4|P100", Priority: 2}}, nil},
		{"swf", "; UnixStartTime: 1700000000\n1 10 5 100 8 -1 -1 12 600 2048 1 3 4 -1 1 1 -1 -1\n2 11 -1 -1 8 -1 -1 8 600 -1 5 3 4 -1 1 1 -1 -1\n", "swf",
			[]Job{{ID: "1", User: "u3", Account: "g4", Duration: 100 * time.Second, Limit: 10 * time.Minute, Units: 12, Memory: 2 << 20}},
			[]string{"1 left out: never ran"}},
		{"sacct", "JobID|User|Account|Submit|Start|ElapsedRaw|Timelimit|ReqTRES|NNodes|State\n" +
			"7|ann|ml|2026-03-01T10:00:00|2026-03-01T10:05:00|3600|1-00:00:00|billing=16,cpu=32,gres/gpu=16,mem=128G,node=2|2|COMPLETED\n" +
			"7.batch||ml|2026-03-01T10:00:00|2026-03-01T10:05:00|3600||cpu=16,node=1|1|COMPLETED\n" +
			"8|ann|ml|2026-03-01T10:01:00|Unknown|0|60|cpu=1,node=1|1|CANCELLED\n" +
			"9|bob|ml|2026-03-01T10:02:00|2026-03-01T10:05:00|60|UNLIMITED|cpu=4,gres/gpu:a100=4,mem=2048M,node=1|1|FAILED\n", "sacct",
			[]Job{{ID: "7", User: "ann", Account: "ml", Duration: time.Hour, Limit: 24 * time.Hour, Ranks: 2, Cards: 8, CPUs: 16, Memory: 64 << 30},
				{ID: "9", User: "bob", Account: "ml", Submit: 2 * time.Minute, Duration: time.Minute, Ranks: 1, Cards: 4, CPUs: 4, Memory: 2 << 30, Models: "a100"}},
			[]string{"1 left out: a step of a job", "1 left out: never started"}},
		{"gacct", `{"schema_version":1,"attempts":[
			{"job_id":3,"epoch":1,"start_time":"2026-03-01T10:00:10Z","end_time":"2026-03-01T10:01:10Z"},
			{"job_id":3,"epoch":2,"start_time":"2026-03-01T10:02:00Z","end_time":"2026-03-01T10:02:30Z"}],
			"jobs":[{"job_id":3,"user":"ann","size":2,"gpus_per_rank":1,"cpus_per_rank":4,"time_limit_seconds":600,"submit_time":"2026-03-01T10:00:00Z","end_time":"2026-03-01T10:02:30Z"},
			{"job_id":4,"size":1,"submit_time":"2026-03-01T10:00:00Z"}]}`, "gacct",
			[]Job{{ID: "3", User: "ann", Duration: 90 * time.Second, Limit: 10 * time.Minute, Ranks: 2, Cards: 1, CPUs: 4}},
			[]string{"1 left out: has not ended"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Parse("x", "", strings.NewReader(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got.Jobs); diff != "" || got.Format != tt.format {
				t.Errorf("format %s, jobs (-want +got):\n%s", got.Format, diff)
			}
			if diff := cmp.Diff(tt.notes, got.Notes(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadsGzip(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write([]byte("job_id,submit_s,duration_s,gpus\na,0,1,1\n"))
	z.Close()
	if tr, err := Parse("x.gz", "", &b); err != nil || len(tr.Jobs) != 1 {
		t.Fatalf("%v, %v", tr, err)
	}
}

func TestRefuses(t *testing.T) {
	const head = "job_id,submit_s,duration_s,gpus,gang\n"
	for _, tt := range []struct{ format, text, want string }{
		{"", "", "jobs.csv: the file is empty"},
		{"", "hello\n", `jobs.csv:1: "hello" is the start of none of the formats csv, swf, sacct, gacct`},
		{"", "job_id,submit,duration_s,gpus\n", `jobs.csv:1: the head line has no column submit_s; nearest is "submit"`},
		{"", head + "a,0,ten,1,1\n", `jobs.csv:2: duration_s: "ten" is no number of seconds from 0 to 9000000000`},
		{"", head + "a,0,1,1,1\nb,-1,1,1,1\n", `jobs.csv:3: submit_s: "-1" is no number of seconds from 0 to 9000000000`},
		{"", head + "a,0,1,1.5,1\n", `jobs.csv:2: gpus: "1.5" is no whole number from 0 to 2147483647`},
		{"", head + "a,0,1,12,5\n", "jobs.csv:2: gang: 12 cards can't be shared equally by 5 members"},
		{"", head + "a,0,1,1,1\na,0,1,1,1\n", `jobs.csv:3: job_id: "a" stands on line 2 already`},
		{"", head + "a,0,1\n", "jobs.csv:2: 3 columns, the head line has 5"},
		{"", head, "jobs.csv: no job to replay"},
		{"", "job_id,submit_s,duration_s,gpus,time_limits\n", "jobs.csv:1: time_limits: unknown column; nearest is time_limit_s"},
		{"swf", "1 2 3\n", "jobs.csv:1: 3 fields, a line of SWF has 18"},
		{"swf", "1 0 5 x 8 -1 -1 8 600 -1 1 3 4 -1 1 1 -1 -1\n", `jobs.csv:1: run time: "x" is no number from -1 to 9000000000`},
		{"sacct", "JobID|User\n", "jobs.csv:1: the head line has no column Submit"},
		{"sacct", "JobID|Submit|ElapsedRaw|ReqTRES\n1|now|5|cpu=1\n", `jobs.csv:2: Submit: "now" is no time such as 2026-03-01T12:00:00`},
		{"sacct", "JobID|Submit|ElapsedRaw|ReqTRES\n1|2026-03-01T12:00:00|5|gres/gpu=3,node=2\n", "jobs.csv:2: ReqTRES: 3 cards can't be shared equally by 2 nodes"},
		{"gacct", "{\n\"schema_version\": 1,\n\"attempts\": 7}", "jobs.csv:3: attempts: a number, want []api.Attempt"},
		{"gacct", "{\n\n", "jobs.csv:3: not JSON: unexpected end of JSON input"},
		{"gacct", `{"schema_version":1}`, "jobs.csv: there is no list jobs in it: it says what the attempts asked for, write the file with this release's gacct --json"},
		{"cvs", "a,b\n", `trace format "cvs": want one of csv, swf, sacct, gacct`},
	} {
		_, err := Parse("jobs.csv", tt.format, strings.NewReader(tt.text))
		if err == nil || err.Error() != tt.want {
			t.Errorf("%q:\n got %v\nwant %s", tt.text, err, tt.want)
		}
	}
}

func TestLimits(t *testing.T) {
	tr := &Trace{Jobs: []Job{{ID: "a", Duration: 100 * time.Second, Limit: time.Hour}}}
	for _, tt := range []struct {
		level string
		least time.Duration
		most  time.Duration
	}{{"file", time.Hour, time.Hour}, {"x2", 105 * time.Second, 200 * time.Second}, {"exact", 100 * time.Second, 100 * time.Second}, {"none", 0, 0}} {
		if err := tr.SetLimits(tt.level); err != nil || tr.Jobs[0].Limit < tt.least || tr.Jobs[0].Limit > tt.most {
			t.Errorf("%s: %v %v", tt.level, tr.Jobs[0].Limit, err)
		}
	}
	if err := tr.SetLimits("good"); err == nil || err.Error() != `limits "good": want one of file, half, none, x2, exact` {
		t.Error(err)
	}
}

// Half drops the limits of about every other job, of the same ones each time, and no others.
func TestHalfTheLimits(t *testing.T) {
	tr := &Trace{}
	for i := range 1000 {
		tr.Jobs = append(tr.Jobs, Job{ID: fmt.Sprint("job", i), Limit: time.Hour})
	}
	for range 2 {
		if err := tr.SetLimits("half"); err != nil {
			t.Fatal(err)
		}
		kept := 0
		for i := range tr.Jobs {
			if tr.Jobs[i].Limit == time.Hour {
				kept++
			} else if tr.Jobs[i].Limit != 0 {
				t.Fatalf("limit %v", tr.Jobs[i].Limit)
			}
		}
		if kept < 450 || kept > 550 {
			t.Errorf("%d of 1000 keep their limits", kept)
		}
	}
}

func TestCut(t *testing.T) {
	tr := &Trace{Jobs: []Job{{Units: 12, Memory: 1 << 20}, {Units: 3}}}
	tr.Cut(8, false)
	want := []Job{{Ranks: 2, CPUs: 6, Memory: 6 << 20}, {Ranks: 1, CPUs: 3}}
	if diff := cmp.Diff(want, tr.Jobs); diff != "" {
		t.Error(diff)
	}
}

// FuzzParse: no file makes a reader panic, and what is read makes sense.
func FuzzParse(f *testing.F) {
	f.Add("", "job_id,submit_s,duration_s,gpus\na,0,1,1\n")
	f.Add("", "1 10 5 100 8 -1 -1 12 600 2048 1 3 4 -1 1 1 -1 -1\n")
	f.Add("sacct", "JobID|Submit|Elapsed|Timelimit|ReqTRES\n1|2026-03-01T12:00:00|1-02:03:04|10:00|cpu=4,gres/gpu:a100=4,mem=1.5T,node=2\n")
	f.Add("gacct", `{"schema_version":1,"attempts":[],"jobs":[]}`)
	f.Fuzz(func(t *testing.T, format, text string) {
		tr, err := Parse("x", format, strings.NewReader(text))
		if err != nil {
			return
		}
		last := time.Duration(0)
		for _, j := range tr.Jobs {
			if j.Ranks < 1 && j.Units < 1 || j.Cards < 0 || j.Duration < 0 || j.Limit < 0 || j.Submit < last {
				t.Fatalf("%+v after %v", j, last)
			}
			last = j.Submit
		}
	})
}
