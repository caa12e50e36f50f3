package config

import (
	"cmp"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/core/finding"
)

// reloads has a daemon that runs with one text read another.
func reloads(t *testing.T, was, is string, set ...string) (*Controller, *Reload[Controller]) {
	t.Helper()
	path := write(t, was)
	running, err := LoadController(path, set)
	if err != nil {
		t.Fatalf("%v\n%s", err, was)
	}
	if err := os.WriteFile(path, []byte(is), 0o600); err != nil {
		t.Fatal(err)
	}
	return running, ReloadController(t.Context(), path, set, running)
}

func keysOf(all []api.ConfigChange) (out []string) {
	for _, c := range all {
		out = append(out, c.Key)
	}
	return out
}

// otherValues are tried in turn for a key, until one is taken and is another than the default.
func otherValues(s *site, of reflect.Value) []string {
	quoted := []string{`"7s"`, `"45s"`, `"23h"`, `"root"`, `"tier"`, `"fifo"`, `"queue"`, `"json"`, `"tls"`, `"wait"`, `"number"`, `"24.11"`, `"pmix"`, `"NONE"`,
		`"13000-13999"`, `"root@example.org"`, `"` + s.dir + `/good"`, `"` + s.dir + `/other"`, `"/nowhere/other"`, `"` + s.dir + `/secret"`, `"` + s.dir + `/topology"`, `"127.0.0.1:7999"`, `"off"`, `"postgres://b/gangd"`}
	switch of.Kind() {
	case reflect.Bool:
		return []string{"true", "false"}
	case reflect.Int:
		return []string{"7", "110", "3"}
	case reflect.Int64:
		if typeName(of) == "size" {
			return []string{`"3MiB"`}
		}
	case reflect.Slice:
		return []string{`["b:7999"]`, `["n[1-2]"]`}
	}
	return quoted
}

// TestEveryKeyIsReloaded walks the table: of each key that is set to another value the answer names this key alone, with what was and
// what is, in force or waiting for a restart as the table says.
func TestEveryKeyIsReloaded(t *testing.T) {
	s := newSite(t)
	s.put("secret", "s3cret\n", 0o600)
	s.directory("other", 0o700)
	common := "state_dir = \"" + s.dir + "/state\"\nsocket = \"/nowhere/sock\"\nadvertise = \"a:1\"\norder = \"service\"\nbackfill_depth = 8\n"
	mail := common + "mail_domains = \"*\"\nmail_from = \"a@example.org\"\n"
	needs := map[string]string{"mail_from": mail + "mail_server = \"localhost:25\"\n", "mail_server": mail}
	pairs := []string{"dir", "mail_login", "mail_password_file", "web_cert", "web_key", "web_proxy_ca", "mail_domain"}
	fields := valuesOf(controllerDefaults())
	counted := 0
	for i := range controllerTable.rows {
		r := &controllerTable.rows[i]
		if slices.Contains(pairs, r.key) {
			continue // which go in pairs, or bring others with them
		}
		base := cmp.Or(needs[r.key], common)
		rest := slices.DeleteFunc(strings.SplitAfter(base, "\n"), func(l string) bool { return strings.HasPrefix(l, r.key+" =") })
		done := false
		var found finding.List
		for _, v := range otherValues(s, reflect.ValueOf(fields[r.key])) {
			text := strings.Join(rest, "") + r.key + " = " + v + "\n"
			running, got := reloads(t, base, text)
			found = append(found, got.Found...)
			if got.Refused() || len(got.Changes)+len(got.Restart) == 0 {
				continue
			}
			done = true
			all := append(keysOf(got.Changes), keysOf(got.Restart)...)
			if !slices.Equal(all, []string{r.key}) || (len(got.Restart) > 0) != (r.when == restart) {
				t.Errorf("%s = %s (%s): changes %v, restart %v", r.key, v, r.when, keysOf(got.Changes), keysOf(got.Restart))
			}
			c := append(got.Changes, got.Restart...)[0]
			if c.Was == c.Is || !strings.Contains(c.Place, "c.toml:") || c.When != r.when.String() {
				t.Errorf("%s: %+v", r.key, c)
			}
			held, is := valuesOf(running)[r.key], valuesOf(got.Running)[r.key]
			if (r.when == restart) != reflect.DeepEqual(held, is) {
				t.Errorf("%s (%s): %v goes on as %v", r.key, r.when, held, is)
			}
			break
		}
		if !done {
			t.Errorf("%s: no value was taken: %v", r.key, found)
		}
		counted++
	}
	if counted < 80 {
		t.Errorf("%d keys were tried", counted)
	}
}

func TestTablesAreReloaded(t *testing.T) {
	two := "[[partition]]\nname = \"a\"\n[[partition]]\nname = \"b\"\nmax_time = \"1h\"\n"
	hook := "[[notify]]\nname = \"x\"\nurl = \"https://example.org/%s\"\n"
	for name, x := range map[string]struct {
		was, is string
		want    []api.ConfigChange
	}{
		"the same":       {two, "# moved\n" + two, nil},
		"a key":          {two, strings.Replace(two, "1h", "2h", 1), []api.ConfigChange{{Key: "partition[b].max_time", Was: "1h", Is: "2h", When: "live", Place: ":5"}}},
		"a key less":     {two, strings.Replace(two, "max_time = \"1h\"\n", "", 1), []api.ConfigChange{{Key: "partition[b].max_time", Was: "1h", Is: "off", When: "live", Place: ":3"}}},
		"one more":       {two, two + "[[partition]]\nname = \"c\"\ntier = 3\n", []api.ConfigChange{{Key: "partition[c]", Is: "tier = 3", When: "live", Place: ":6"}}},
		"one less":       {two, two[:24] + "\n", []api.ConfigChange{{Key: "partition[b]", Was: "max_time = 1h", When: "live"}}},
		"a job's key":    {two, two + "gpu_watch = true\n", []api.ConfigChange{{Key: "partition[b].gpu_watch", Was: "false", Is: "true", When: "next job", Place: ":6"}}},
		"another secret": {strings.Replace(hook, "%s", "a", 1), strings.Replace(hook, "%s", "b", 1), []api.ConfigChange{{Key: "notify[x].url", Was: notShown, Is: notShown + " (its contents are others)", When: "live", Place: ":3"}}},
		"none":           {"grace = \"5s\"", "grace = \"5000ms\"", nil},
		"in another order": {"[[licence]]\nname = \"a\"\n[[licence]]\nname = \"b\"\n", "[[licence]]\nname = \"b\"\n[[licence]]\nname = \"a\"\n",
			[]api.ConfigChange{{Key: "licence", Was: "a, b", Is: "b, a", When: "live", Place: ":1"}}},
	} {
		_, r := reloads(t, x.was, x.is)
		if r.Refused() {
			t.Errorf("%s: %v", name, r.Found)
			continue
		}
		for i := range r.Changes {
			if _, line, ok := strings.Cut(r.Changes[i].Place, "c.toml"); ok {
				r.Changes[i].Place = line
			}
		}
		if !slices.Equal(r.Changes, x.want) || r.Restart != nil {
			t.Errorf("%s:\n got %+v\nwant %+v", name, r.Changes, x.want)
		}
	}
}

// TestReloadRefusesWhatCheckFinds: each broken file of `check` is refused, with the same line, and nothing comes out.
func TestReloadRefusesWhatCheckFinds(t *testing.T) {
	s := newSite(t)
	n := 0
	for _, b := range broken {
		if b.node {
			continue
		}
		text := strings.ReplaceAll(b.text, "@", s.dir+"/")
		path := write(t, text)
		found := CheckController(t.Context(), path, nil)
		if !slices.ContainsFunc(found, func(f api.DoctorFinding) bool { return f.Severity == api.SeverityError }) {
			continue
		}
		running, err := LoadController("", nil)
		if err != nil {
			t.Fatal(err)
		}
		r := ReloadController(t.Context(), path, nil, running)
		if !r.Refused() || r.Changes != nil || !slices.Equal(r.Found, found) {
			t.Errorf("%q: %+v, want %v", text, r, found)
		}
		n++
	}
	if n < 30 {
		t.Errorf("%d broken files", n)
	}
}

// TestKeysThatWaitAndKeysThatDoNot: what takes a restart goes on as it is, and a file whose rest can't go with that is refused.
func TestKeysThatWaitAndKeysThatDoNot(t *testing.T) {
	_, r := reloads(t, "heartbeat = \"10s\"\nnode_timeout = \"30s\"\n", "heartbeat = \"1s\"\n\nnode_timeout = \"5s\"\n")
	if !r.Refused() || !strings.HasSuffix(r.Found[0].Subject, "c.toml:3") || !strings.Contains(r.Found[0].Evidence, "more than heartbeat (10s)") {
		t.Errorf("%+v", r)
	}
	running, r := reloads(t, "log_format = \"text\"\ngrace = \"5s\"", "log_format = \"json\"\ngrace = \"6s\"", "user_jobs=7")
	if r.Refused() || r.Running.LogFormat != running.LogFormat || r.Running.Grace == running.Grace || r.Running.UserJobs != 7 {
		t.Errorf("%+v", r.Running)
	}
}

// TestHostsFaultsAreForgiven: a program that is gone since is no reason to refuse another key, and one that the file names anew is.
func TestHostsFaultsAreForgiven(t *testing.T) {
	s := newSite(t)
	base := "idle_hook = \"" + s.dir + "/gone\"\n"
	if _, r := reloads(t, base, base+"grace = \"5s\"\n"); r.Refused() || len(r.Found) != 1 || r.Found[0].Severity != api.SeverityWarning {
		t.Errorf("%+v", r)
	}
	if _, r := reloads(t, "", base); !r.Refused() {
		t.Errorf("%+v", r)
	}
}
