package script

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
)

func TestParseTime(t *testing.T) {
	const h, m, s = time.Hour, time.Minute, time.Second
	for in, want := range map[string]time.Duration{
		"90": 90 * m, "12:00:00": 12 * h, "3-00:00:00": 72 * h, "0-06": 6 * h, "240": 240 * m, "90m": 90 * m,
		"1-12:30": 36*h + 30*m, "0:30": 30 * s, "10:00": 10 * m, "00:90:00": 90 * m, "1d12h": 36 * h, "45s": 45 * s,
		"90min": 90 * m, "12hours": 12 * h, "2D": 48 * h, " 5 ": 5 * m, "1-0": 24 * h, "1h30m": 90 * m, "0": 0, "0s": 0,
	} {
		if got, err := ParseTime(in); err != nil || got != want {
			t.Errorf("ParseTime(%q) = %v, %v; want %v", in, got, err, want)
		}
	}
	for in, want := range map[string]string{
		"":            "the time is empty; " + timeForms,
		"-5":          "a time can't be negative; " + timeForms,
		"soon":        "not a time; " + timeForms,
		"1:2:3:4":     "not a time; " + timeForms,
		"1-":          "not a time; " + timeForms,
		"12:":         "not a time; " + timeForms,
		"30m1h":       "not a time; " + timeForms,
		"1h1h":        "not a time; " + timeForms,
		"5x":          "not a time; " + timeForms,
		"1.5h":        "not a time; " + timeForms,
		"99999999999": "longer than ten years; " + timeForms,
		"9999-00":     "longer than ten years; " + timeForms,
		"3650-23:59":  "longer than ten years; " + timeForms,
	} {
		if got, err := ParseTime(in); err == nil || err.Error() != want {
			t.Errorf("ParseTime(%q) = %v, %v; want %q", in, got, err, want)
		}
	}
}

func TestParseSize(t *testing.T) {
	const g = 1 << 30
	for in, want := range map[string]int64{
		"24G": 24 * g, "24GB": 24 * g, "24gb": 24 * g, "24GiB": 24 * g, "16000": 16000 << 20, "0": 0, "5GiB": 5 * g,
		"1.5T": 1536 * g, "512M": g / 2, "1024K": 1 << 20, "100B": 100, "0.5G": g / 2, " 3 G ": 3 * g, "64T": 1 << 46,
	} {
		if got, err := ParseSize(in); err != nil || got != want {
			t.Errorf("ParseSize(%q) = %v, %v; want %v", in, got, err, want)
		}
	}
	for in, want := range map[string]string{
		"":       "the size is empty; " + sizeForms,
		"-1G":    "a size can't be negative; " + sizeForms,
		"many":   "not a size; " + sizeForms,
		"1..5G":  "not a size; " + sizeForms,
		"24X":    `unknown unit "X"; ` + sizeForms,
		"24Gi b": `unknown unit "Gi b"; ` + sizeForms,
		"1025P":  "larger than 64T; " + sizeForms,
	} {
		if got, err := ParseSize(in); err == nil || err.Error() != want || got != 0 {
			t.Errorf("ParseSize(%q) = %v, %v; want %q", in, got, err, want)
		}
	}
	for n, want := range map[int64]string{40 << 30: "40G", 1 << 40: "1T", 1536 << 20: "1536M", 7: "7B", 0: "0B"} {
		if got := formatSize(n); got != want {
			t.Errorf("formatSize(%d) = %s, want %s", n, got, want)
		}
	}
}

func TestParseArray(t *testing.T) {
	for in, want := range map[string]*api.Array{
		"0-3%2": {Indices: []int{0, 1, 2, 3}, Limit: 2}, "1-10:4": {Indices: []int{1, 5, 9}}, "7": {Indices: []int{7}},
		"5,1,3-4,4": {Indices: []int{1, 3, 4, 5}}, "[0-1]": {Indices: []int{0, 1}}, "1-3%1": {Indices: []int{1, 2, 3}, Limit: 1},
	} {
		if got, err := parseArray(in); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("ParseArray(%q) = %v, %v; want %v", in, got, err, want)
		}
	}
	for in, want := range map[string]string{
		"5-1":        `the range "5-1" runs backwards; write 1-5`,
		"0-99999999": "asks for 100000000 elements, at most 10000 are accepted; split it into several arrays",
		"%0":         "the limit behind % must be 1 or more; " + arrayForms,
		"0-3%":       "the limit behind % must be 1 or more; " + arrayForms,
		"%4":         "no index; " + arrayForms,
		"":           "no index; " + arrayForms,
		"1-x":        `"1-x" is not an index or a range of indices; ` + arrayForms,
		"-1":         `"-1" is not an index or a range of indices; ` + arrayForms,
		"0-9:0":      `the step in "0-9:0" must be 1 or more; ` + arrayForms,
		"1,,2":       `"" is not an index or a range of indices; ` + arrayForms,
		"9999999999": `"9999999999" is not an index or a range of indices; ` + arrayForms,
	} {
		if got, err := parseArray(in); err == nil || err.Error() != want {
			t.Errorf("ParseArray(%q) = %v, %v; want %q", in, got, err, want)
		}
	}
}

func TestParseNotice(t *testing.T) {
	for in, want := range map[string]api.Notice{
		"USR1@120":      {Signal: "USR1", Lead: 2 * time.Minute, Scope: api.ScopeRanks},
		"B:SIGTERM@2m":  {Signal: "TERM", Lead: 2 * time.Minute, Scope: api.ScopeBatch},
		"b:10":          {Signal: "USR1", Lead: time.Minute, Scope: api.ScopeBatch},
		"sigint@1:00":   {Signal: "INT", Lead: time.Minute, Scope: api.ScopeRanks},
		"12@0":          {Signal: "USR2", Scope: api.ScopeRanks},
		"SIGUSR2@3600s": {Signal: "USR2", Lead: time.Hour, Scope: api.ScopeRanks},
	} {
		a := new(Ask)
		if got, err := a.parseNotice(in); err != nil || *got != want || len(a.warned) > 0 {
			t.Errorf("parseNotice(%q) = %v, %v, %q; want %v", in, got, err, a.warned, want)
		}
	}
	for in, want := range map[string]string{
		"USR3@60":  `there is no signal "USR3"; did you mean USR1?`,
		"99":       "there is no signal 99; signals are 1 to 31, or names as in kill -l",
		"":         `there is no signal ""; names are as in kill -l`,
		"X:TERM":   `unknown scope "X:"; ` + signalForms,
		"TERM@":    `the lead "" is not a time; ` + signalForms,
		"TERM@now": `the lead "now" is not a time; ` + signalForms,
	} {
		if got, err := new(Ask).parseNotice(in); err == nil || err.Error() != want {
			t.Errorf("parseNotice(%q) = %v, %v; want %q", in, got, err, want)
		}
	}
}

// TestNoticesThatWarn: sbatch takes them, so scripts have them.
func TestNoticesThatWarn(t *testing.T) {
	const overlap, uncaught = "R: has no effect: there are no reservations that a job could overlap", " can't be caught: it is no notice, and has no effect"
	for _, c := range []struct {
		in   string
		want api.Notice
		warn []string
	}{
		{"R:TERM", api.Notice{Signal: "TERM", Lead: time.Minute, Scope: api.ScopeRanks}, []string{overlap}},
		{"rb:TERM@5", api.Notice{Signal: "TERM", Lead: 5 * time.Second, Scope: api.ScopeBatch}, []string{overlap}},
		{"BR:STOP", api.Notice{Signal: "STOP", Lead: time.Minute, Scope: api.ScopeBatch}, []string{overlap, "STOP" + uncaught}},
		{"KILL@10", api.Notice{Signal: "KILL", Lead: 10 * time.Second, Scope: api.ScopeRanks}, []string{"KILL" + uncaught}},
		{"SIGKILL", api.Notice{Signal: "KILL", Lead: time.Minute, Scope: api.ScopeRanks}, []string{"KILL" + uncaught}},
	} {
		a := new(Ask)
		if got, err := a.parseNotice(c.in); err != nil || *got != c.want || !slices.Equal(a.warned, c.warn) {
			t.Errorf("parseNotice(%q) = %v, %v, %q; want %v, %q", c.in, got, err, a.warned, c.want, c.warn)
		}
	}
}

// TestStrangeLetters: what stays in a name is warned of, and what is replaced is not.
func TestStrangeLetters(t *testing.T) {
	for in, want := range map[string]string{
		"x-%J.%s.%b.out": "", "%A_%a": "", "%10j%%": "", "100%": "%", "%q": "%q", "%j-%4q": "%4q", "%5": "%5", "%.out": "%.", `%q\q`: "",
	} {
		a := new(Ask)
		a.warnPattern(in)
		if (want == "") != (len(a.warned) == 0) || want != "" && !strings.HasPrefix(a.warned[0], strconv.Quote(want)+" stands for nothing") {
			t.Errorf("of %q is warned %q, want of %q", in, a.warned, want)
		}
	}
}

func TestParseGRES(t *testing.T) {
	for in, want := range map[string]gres{
		"gpu": {gpus: 1}, "gpu:4": {gpus: 4}, "gpu:a100:4": {gpus: 4, kind: "a100"}, "gpu:A100": {gpus: 1, kind: "a100"},
		"gpu:1,VRAM:24G": {gpus: 1, vram: 24 << 30}, "gpumem:20g": {gpus: 1, vram: 20 << 30, sizeOnly: true}, "gmem:40G,gpu:2": {gpus: 2, vram: 40 << 30},
		"gpu=2": {gpus: 2}, "none": {}, "shard:0,gpu:2,license:0": {gpus: 2}, "gpu:0": {}, "gpu:a100|h100:8": {gpus: 8, kind: "a100|h100"},
	} {
		if got, err := parseGRES(in); err != nil || got != want {
			t.Errorf("parseGRES(%q) = %v, %v; want %v", in, got, err, want)
		}
	}
	for in, want := range map[string]string{
		"gpu:-1":      "not a number of cards; write 4 or a100:4",
		"gpu:a100:x":  "not a number of cards; write 4 or a100:4",
		"gpu:1,gpu:2": "gpu is named twice; one type of card for a job; alternatives are gpu:a100|h100:4",
		"shard:2":     `unknown resource "shard"; ` + gresForms,
		"VRAM:24":     "24M is less than a card needs for any program; did you mean 24G?",
		"gpu:9999999": "9999999 cards are more than any site has; write 4 or a100:4",
	} {
		if got, err := parseGRES(in); err == nil || err.Error() != want {
			t.Errorf("parseGRES(%q) = %v, %v; want %q", in, got, err, want)
		}
	}
}

func TestParseBegin(t *testing.T) {
	now := time.Date(2030, 5, 17, 13, 30, 0, 0, time.UTC)
	at := func(y int, m time.Month, d, h, min, s int) time.Time {
		return time.Date(y, m, d, h, min, s, 0, time.UTC)
	}
	for in, want := range map[string]time.Time{
		"16:00": at(2030, 5, 17, 16, 0, 0), "09:15:30": at(2030, 5, 18, 9, 15, 30), "now+1hour": at(2030, 5, 17, 14, 30, 0),
		"now+60": at(2030, 5, 17, 13, 31, 0), "now+2days": at(2030, 5, 19, 13, 30, 0), "now+1week": at(2030, 5, 24, 13, 30, 0),
		"tomorrow": at(2030, 5, 18, 0, 0, 0), "midnight": at(2030, 5, 18, 0, 0, 0), "noon": at(2030, 5, 18, 12, 0, 0),
		"teatime": at(2030, 5, 17, 16, 0, 0), "2031-01-20": at(2031, 1, 20, 0, 0, 0), "2031-01-20T12:34:00": at(2031, 1, 20, 12, 34, 0),
		"06/01": at(2030, 6, 1, 0, 0, 0), "01/20": at(2031, 1, 20, 0, 0, 0), "06/01/31": at(2031, 6, 1, 0, 0, 0), "4pm": at(2030, 5, 17, 16, 0, 0),
		"now": now, "today": at(2030, 5, 17, 0, 0, 0), "noon-tomorrow": at(2030, 5, 18, 12, 0, 0), "teatime-today": at(2030, 5, 17, 16, 0, 0),
		"noon tomorrow": at(2030, 5, 18, 12, 0, 0), "noontomorrow": at(2030, 5, 18, 12, 0, 0), "tomorrow 16:00": at(2030, 5, 18, 16, 0, 0),
		"16:00 06/01/31": at(2031, 6, 1, 16, 0, 0), "now + 5 minutes": at(2030, 5, 17, 13, 35, 0), "0601": at(2030, 6, 1, 0, 0, 0), "03.04.31": at(2031, 3, 4, 0, 0, 0),
	} {
		if got, err := ParseBegin(in, now); err != nil || !got.Equal(want) {
			t.Errorf("ParseBegin(%q) = %v, %v; want %v", in, got, err, want)
		}
	}
	for _, in := range []string{"", "soon", "25:00", "now+", "now+1fortnight", "now+99999999999", "2030-13-01", "noon+1hour", "yesterday"} {
		if got, err := ParseBegin(in, now); err == nil || err.Error() != "not a time; "+beginForms {
			t.Errorf("ParseBegin(%q) = %v, %v", in, got, err)
		}
	}
}

func TestParseExport(t *testing.T) {
	environ := []string{"A=1", "B=2", "GANG_RANK=0", "SLURM_JOB_ID=3", "GANG_DIR=/d", "RANK=1"}
	for in, want := range map[string][]string{
		"ALL": {"A=1", "B=2", "GANG_DIR=/d"}, "NONE": nil, "NIL": nil, "B": {"B=2"}, "ALL,A=7": {"A=7", "B=2", "GANG_DIR=/d"},
		`X="1,2",A`: {"A=1", "X=1,2"}, "X=": {"X="}, "ALL,C='d e'": {"A=1", "B=2", "GANG_DIR=/d", "C=d e"},
	} {
		e, err := ParseExport(in)
		if got, _ := e.Environ(environ); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("ParseExport(%q) gives %q, %v; want %q", in, got, err, want)
		}
	}
	for in, want := range map[string]string{
		"=x":       `"" is not the name of a variable; ` + exportForms,
		"1A=2":     `"1A" is not the name of a variable; ` + exportForms,
		"A B":      `"A B" is not the name of a variable; ` + exportForms,
		"":         `"" is not the name of a variable; ` + exportForms,
		"A,,B":     `"" is not the name of a variable; ` + exportForms,
		"NONE,A=1": "NONE stands alone; " + exportForms,
		`A="x`:     "the quote is never closed; " + exportForms,
	} {
		if e, err := ParseExport(in); err == nil || err.Error() != want {
			t.Errorf("ParseExport(%q) = %v, %v; want %q", in, e, err, want)
		}
	}
}

func TestFixedDir(t *testing.T) {
	for in, want := range map[string]string{
		"logs/%x-%j.%4t.out": "logs", "/a/b/c.out": "/a/b", "%u/x": "", "x": "", "/x": "/", "/a/%u/b": "/a", "a%%b/c": "",
	} {
		if got := FixedDir(in); got != want {
			t.Errorf("FixedDir(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestNearest(t *testing.T) {
	for in, want := range map[string]string{"tiem": "time", "gpu-per-rank": "gpus-per-rank", "memory": "", "partion": "partition",
		"zzz": "", "t": "", "max-retrys": "max-retries"} {
		if got := nearestName(in); got != want {
			t.Errorf("nearestName(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestParseCompute(t *testing.T) {
	for in, want := range map[string]string{"8.0": "8.0", "9": "9.0", "sm_80": "8.0", "SM86": "8.6", "sm_90a": "9.0", "compute_100": "10.0", "cc8.9": "8.9", "12.1": "12.1", "80": "8.0"} {
		if got, err := parseCompute(in); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %s", in, got, err, want)
		}
	}
	for _, in := range []string{"", "hopper", "0", "8.0.1", "8.x", "-8", "12345", "8.11"} {
		if got, err := parseCompute(in); err == nil || err.Error() != "not a CUDA compute capability; write --min-compute=8.0 or sm_80; ginfo --json has those of the cards" {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
}

// TestVRAMAsSitesSpellIt: every spelling that is met comes to the same ask.
func TestVRAMAsSitesSpellIt(t *testing.T) {
	for _, in := range []string{"gpu:2,VRAM:24G", "gpu:2,vram:24g", "VRAM:24GB,gpu:2", "gpu=2,VRAM=24G", "gpu:2,gpumem:24G", "gpu:2,gmem:24576M", "gpu:2,gpu_mem:24576", "gpu:2, gpuram:24GiB"} {
		if g, err := parseGRES(in); err != nil || g != (gres{gpus: 2, vram: 24 << 30}) {
			t.Errorf("%s: %+v, %v", in, g, err)
		}
	}
}
