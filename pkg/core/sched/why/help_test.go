package why

import (
	"flag"

	"gangd/pkg/lab/plantest"
	"gangd/pkg/lab/transcript"
)

var update = flag.Bool("update", false, "write testdata/transcripts anew")

var printer = transcript.Printer{Since: plantest.Epoch0}
