package script

import (
	_ "embed"
	"errors"
	"strings"
	"testing"
	"time"
)

//go:embed testdata/headers.txt
var headers string

// TestPublicHeaders: what people's scripts say to sbatch is taken, or warned about; what is refused has its reason.
func TestPublicHeaders(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	read, directives := 0, 0
	for n, line := range strings.Split(headers, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		line, refused := strings.CutPrefix(line, "! ")
		lines := strings.Split(strings.ReplaceAll(line, `\|`, "\x00"), "|")
		if refused {
			lines = lines[:len(lines)-1]
		}
		text := "#!/bin/bash\n"
		for _, d := range lines {
			text += "#SBATCH " + strings.ReplaceAll(d, "\x00", "|") + "\n"
		}
		settings, _, err := Directives("job.sh", []byte(text+"true\n"))
		if err == nil {
			_, _, err = Build(settings, now)
		}
		var said *Error
		switch {
		case refused && !errors.As(err, &said):
			t.Errorf("headers.txt:%d: want an error of the script, got %v", n+1, err)
		case !refused && err != nil:
			t.Errorf("headers.txt:%d: %v", n+1, err)
		}
		read, directives = read+1, directives+len(lines)
	}
	if read < 300 || directives < 2300 {
		t.Errorf("%d headers of %d lines, want 300 and 2300", read, directives)
	}
}
