package order

import (
	"flag"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/lab/transcript"
)

const gib = int64(1) << 30

var update = flag.Bool("update", false, "write testdata/transcripts anew")

var epoch0 = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

var printer = transcript.Printer{Since: epoch0}

func candidate(job int64, spec api.Spec) *Candidate {
	return &Candidate{Job: job, Submit: epoch0.Add(time.Duration(job) * time.Second), Terms: &Terms{Size: spec.Size, Ask: cluster.AskOf(&spec, []string{"gpu"})}}
}
