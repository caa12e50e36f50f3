package metrics

import (
	"net/http/httptest"
	"strings"
	"testing"
)

// One that stands by has nothing that would be counted twice beside the leader's page.
func TestStandby(t *testing.T) {
	w := httptest.NewRecorder()
	Standby("1.2", func() float64 { return 0.5 }).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	var got []string
	for line := range strings.Lines(w.Body.String()) {
		if !strings.HasPrefix(line, "#") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	want := `gang_build_info{version="1.2"} 1,gang_controller_leads 0,gang_standby_behind_seconds 0.5`
	if strings.Join(got, ",") != want {
		t.Errorf("got %q, want %s", got, want)
	}
}
