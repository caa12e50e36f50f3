package proc

import (
	"os"
	"path/filepath"
	"testing"
)

// Where nothing was killed the count alone is read; where something was, the rest says why.
func TestShortage(t *testing.T) {
	group := func(files map[string]string) string {
		dir := t.TempDir()
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	v1 := func(kills, peak string) Containment {
		return &sided{Containment: &cgroup2{dir: group(map[string]string{"memory.events": "oom 7\noom_kill 7\n"}), fd: -1}, sides: map[string]string{sideMemory: group(map[string]string{
			"memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill " + kills + "\n", "memory.max_usage_in_bytes": peak, "memory.limit_in_bytes": "100\n"})}}
	}
	v2 := func(own, kills string) *cgroup2 {
		return &cgroup2{dir: group(map[string]string{"memory.events": "low 0\nhigh 0\nmax 9\noom " + own + "\noom_kill " + kills + "\n", "memory.peak": "100\n"}), fd: -1}
	}
	for name, c := range map[string]struct {
		of   Containment
		want Shortage
	}{
		"v1, its limit reached":             {v1("0", "100"), Shortage{}},
		"v1, killed":                        {v1("2", "100"), Shortage{Kills: 2, Own: true, Peak: 100}},
		"v1, killed for others":             {v1("2", "60"), Shortage{Kills: 2, Peak: 60}},
		"v2, its limit reached":             {v2("3", "0"), Shortage{}},
		"v2, killed":                        {v2("3", "1"), Shortage{Kills: 1, Own: true, Peak: 100}},
		"v2, killed for others":             {v2("0", "1"), Shortage{Kills: 1, Peak: 100}},
		"v2 beside v1 for processes":        {&sided{Containment: v2("3", "1"), sides: map[string]string{sidePIDs: t.TempDir()}}, Shortage{Kills: 1, Own: true, Peak: 100}},
		"v2 without a controller of memory": {&cgroup2{dir: t.TempDir(), fd: -1}, Shortage{}},
	} {
		if got := c.of.Shortage(); got != c.want {
			t.Errorf("%s: %+v, wanted %+v", name, got, c.want)
		}
	}
}
