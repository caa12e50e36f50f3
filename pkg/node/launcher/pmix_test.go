package launcher

import (
	"os"
	"testing"
)

// TestLookForPMIxReadsNoLibraries: each launcher looks for libpmix, and a machine has thousands of libraries. What a look
// allocates goes by the names that it reads: those in /usr/lib, and not those in the directories below it.
func TestLookForPMIxReadsNoLibraries(t *testing.T) {
	names, err := os.ReadDir("/usr/lib")
	if err != nil {
		t.Skip(err)
	}
	if n, most := testing.AllocsPerRun(10, func() { pmixLibraries() }), float64(4*len(names)+100); n > most {
		t.Errorf("a look takes %g allocations, want at most %g", n, most)
	}
}
