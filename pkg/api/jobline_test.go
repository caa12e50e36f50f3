package api

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func lineJobs() []Job {
	index := 3
	return []Job{
		{JobID: 12, Name: "tab\tline\nback\\n", User: "ada", Account: "vision", Cards: 8, Partition: "main,big", State: JobRunning, StateCode: "R", Priority: -4, Size: 4, Epoch: 2,
			MinNodes: 2, Nodes: []string{"n1", "n3"}, TimeLimitSeconds: 90, SubmitTime: time.Unix(1, 5), StartTime: time.Unix(2, 0), EndTime: time.Unix(3, 0)},
		{JobID: 15, ArrayJobID: 14, ArrayIndex: &index, ArrayLimit: 4, Name: "ü\r", State: JobPending, StateCode: "PD", Reason: "JobHeldUser", Held: "user", Size: 1, SubmitTime: time.Unix(9, 0)},
		{JobID: 16, Name: "het", State: JobRunning, StateCode: "R", Size: 3, SubmitTime: time.Unix(9, 0), Components: []JobComponent{{Size: 1, MinNodes: 1, Nodes: []string{"n1"}, Partition: "cpu"},
			{Size: 2, MinNodes: 1, Nodes: []string{"n2", "n3"}, Partition: "gpu"}}},
	}
}

func lineText2(jobs []Job) []byte {
	b := AppendLineHeader(nil)
	for i := range jobs {
		b = AppendLine(b, &jobs[i])
	}
	return b
}

func TestLinesThereAndBack(t *testing.T) {
	text := lineText2(lineJobs())
	got, err := ReadLines(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(lineJobs(), got); d != "" {
		t.Error(d)
	}
	if n := bytes.Count(text, []byte("\n")); n != 4 {
		t.Errorf("%d lines:\n%s", n, text)
	}
	// A newer controller's column is skipped.
	newer := strings.NewReplacer("job_id\tarray_job_id", "job_id\tmood\tarray_job_id", "12\t0", "12\tfine\t0", "15\t14", "15\t\t14", "16\t0", "16\t\t0").Replace(string(text))
	if got, err = ReadLines(strings.NewReader(newer)); err != nil || len(got) != 3 || got[1].ArrayJobID != 14 {
		t.Errorf("%v %+v", err, got)
	}
}

func TestLinesThatAreNot(t *testing.T) {
	for in, want := range map[string]string{
		"":                        "unexpected EOF",
		"job_id\tname":            "unexpected EOF",
		"job_id\tname\n1\tx":      "unexpected EOF",
		"job_id\tname\n1\n":       "line 2: want 2 fields",
		"job_id\tname\n1\tx\ty\n": "line 2: want 2 fields",
		"job_id\tname\nx\tx\n":    `line 2: job_id: strconv.ParseInt: parsing "x": invalid syntax`,
		"{}\n":                    `line 1: no column that is known: "{}"`,
	} {
		if _, err := ReadLines(strings.NewReader(in)); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", in, err, want)
		}
	}
}

func BenchmarkLines(b *testing.B) {
	jobs := make([]Job, 0, 10000)
	for len(jobs) < 10000 {
		jobs = append(jobs, lineJobs()...)
	}
	b.Run("write", func(b *testing.B) {
		for b.Loop() {
			lineText2(jobs)
		}
	})
	text := lineText2(jobs)
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			if _, err := ReadLines(bytes.NewReader(text)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
