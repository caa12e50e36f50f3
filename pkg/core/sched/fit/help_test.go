package fit

import "flag"

var update = flag.Bool("update", false, "write testdata/transcripts anew")
