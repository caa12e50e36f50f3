package controller

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/engine"
	"gangd/pkg/core/rule"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/disk"
	"gangd/pkg/lab/tool"
	"gangd/pkg/node/sitehook"
)

var ruleTries = flag.Int("submitrule.tries", 2, "so many submissions of each kind about which the rule gives no answer")

// TestBadRulesDelayNobodyElse: submissions about which the rule hangs, dies, lies or floods are each refused with a sentence,
// one after the other; those of somebody else are taken meanwhile.
func TestBadRulesDelayNobodyElse(t *testing.T) {
	const ruleTime = 2 * time.Second // a busy machine may be slow to start a shell
	path := filepath.Join(t.TempDir(), "rule")
	const script = `#!/bin/sh
q=$(cat)
case $q in
*'"name":"hangs"'*) echo '{}'; exec sleep 60;;
*'"name":"dies"'*) kill -9 $$;;
*'"name":"lies"'*) echo '{"change":{"size":"yes"}}';;
*'"name":"floods"'*) exec yes;;
*) echo '{}';;
esac
`
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	eng, err := engine.New(t.Context(), engine.Options{Store: disk.Open(t), Clock: engine.SystemClock(), Log: slog.New(slog.DiscardHandler),
		Record: noRecord{}, Conf: engine.Conf{Settings: api.DefaultSettings(), Policy: order.Policy{Partitions: []api.Partition{{Name: "main", Default: true}}},
			Rule: submitRule(sitehook.Program{Path: path, Timeout: ruleTime})}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- eng.Run(ctx) }()
	defer func() { cancel(); <-ran }()
	submit := func(user string, uid uint32, name string) error {
		s := api.Spec{Name: name, Size: 1, Launch: api.LaunchRanks, CPUsPerRank: 1, WorkDir: "/tmp", Script: []byte("#!/bin/sh\n")}
		for {
			_, err := eng.Submit(t.Context(), &api.SubmitRequest{Spec: s}, engine.Caller{UID: uid, GID: uid, User: user})
			if err == nil || api.CodeOf(err) != api.CodeTooMany {
				return err
			}
			time.Sleep(50 * time.Millisecond) // as clients do, who are told when to come again
		}
	}
	words := map[string]string{"hangs": "no answer within 2 s", "dies": "signal: killed", "lies": "it changes size, which a rule can't",
		"floods": fmt.Sprintf("it wrote more than %d bytes", rule.MaxAnswer)}
	var eve sync.WaitGroup
	var refused atomic.Int32
	for name, want := range words {
		for range *ruleTries {
			eve.Go(func() {
				err := submit("eve", 1001, name)
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %v, want %q", name, err, want)
				}
				refused.Add(1)
			})
		}
	}
	for i := range 4 {
		if err := submit("bob", 1002, fmt.Sprint("b", i)); err != nil {
			t.Error(err)
		}
	}
	if n := refused.Load(); int(n) == 4**ruleTries {
		t.Error("bob waited for all of eve's")
	}
	eve.Wait()
}

// TestJobSubmitLua: the example runs a site's job_submit.lua, which sees jobs by Slurm's names and changes them by these.
func TestJobSubmitLua(t *testing.T) {
	tool.Need(t, "lua5.4")
	bridge, err := os.ReadFile("../../examples/submit-rule/rule")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("../../examples/submit-rule/job_submit.lua")
	if err != nil {
		t.Fatal(err)
	}
	hour := api.Spec{Name: "tr\u00e4in \"x\"\n\\", Account: "p", Size: 2, CPUsPerRank: 2, TimeLimit: time.Hour, MemoryPerNode: 1 << 30,
		Begin: time.Date(2028, 2, 29, 1, 2, 3, 0, time.FixedZone("", 5400)), NodeList: []string{"n1", "n2"}, Nice: 5,
		Env: []string{"A=1", "B=a=b\xff"}, Script: []byte("#!/bin/sh\n\x01\u20ac\U0001f600"),
		AsAsked: api.AsAsked{Pools: []api.Pool{{Kind: "licence", Name: "m", Count: 2}}}}
	hour.Pack()
	body := func(text string) string {
		return "function slurm_job_submit(d, parts, uid)\n" + text + "\nreturn slurm.SUCCESS\nend\n"
	}
	for _, c := range []struct {
		name, lua string
		job       api.Spec
		update    bool
		want      string // what was changed, or what was refused
	}{
		{"example: no account", string(example), api.Spec{Size: 1, CPUsPerRank: 1}, false, "refused: name your project: --account=PROJECT"},
		{"example: cards", string(example), api.Spec{Account: "p", Size: 1, CPUsPerRank: 1, GPUsPerRank: 1}, false,
			"partition to gpu, time_limit_seconds to 3600 / no --time was given: the job has an hour"},
		{"example: as it is", string(example), hour, false, ""},
		{"example: longer", string(example), api.Spec{Size: 1, CPUsPerRank: 1, TimeLimit: 48 * time.Hour}, true,
			"refused: a time limit above a day is for the operators to give"},
		{"sees", body(`assert(d.name == 'tr\u{e4}in "x"\n\\', d.name); assert(d.time_limit == 60); assert(d.pn_min_memory == 1024)
			assert(d.begin_time == 1835398923 - 5400, d.begin_time); assert(d.req_nodes == "n1,n2"); assert(d.nice == slurm.NICE_OFFSET + 5)
			assert(d.environment.A == "1"); assert(d.licenses == "m:2"); assert(d.script == "#!/bin/sh\n\1\u{20ac}\u{1f600}")
			assert(d.min_cpus == 4); assert(d.features == nil); assert(parts.gpu.flag_default == 0); assert(uid == 1000)`), hour, false, ""},
		{"sets", body(`d.features = "a100&nvlink"; d.time_limit = 90; d.exc_nodes = "n3,n4"; d.comment = 'a "b"'; d.licenses = "m:1,k"
			d.nice = slurm.NICE_OFFSET - 3; d.requeue = 0; d.shared = 0; d.min_nodes = 1; d.begin_time = 1835398923; d.name = "y"`), hour, false,
			`begin from 2028-02-29T01:02:03+01:30 to 2028-02-29T01:02:03Z, comment to a "b", constraint to a100&nvlink, exclude to ["n3","n4"], ` +
				`exclusive to true, min_nodes to 1, name from tr` + "\u00e4" + `in "x" \ to y, nice from 5 to -3, no_requeue to true, ` +
				`pools from [{"kind":"licence","name":"m","count":2}] to [{"kind":"licence","name":"m","count":1},{"kind":"licence","name":"k","count":1}], ` +
				`time_limit_seconds from 3600 to 5400`},
		{"takes back", body(`d.time_limit = slurm.NO_VAL; d.account = nil; d.begin_time = 0; d.licenses = nil; d.req_nodes = nil; d.nice = slurm.NO_VAL`),
			hour, false, `account from p to nothing, begin from 2028-02-29T01:02:03+01:30 to nothing, nice from 5 to nothing, node_list from ` +
				`["n1","n2"] to nothing, pools from [{"kind":"licence","name":"m","count":2}] to nothing, time_limit_seconds from 3600 to nothing`},
		{"memory", body(`d.min_mem_per_cpu = 512`), hour, false, "memory_per_node from 1073741824 to nothing, memory_per_rank to 1073741824"},
		{"holds", body(`d.priority = 0`), hour, false, "hold to true"},
		{"what gangd has not", body(`d.burst_buffer = "x"`), hour, false, "failed: job_submit.lua sets burst_buffer, which gangd can't change"},
		{"the environment", body(`d.environment.LD_PRELOAD = "x"`), hour, false, "sets LD_PRELOAD in the environment, which gangd can't change"},
		{"a range", body(`d.exc_nodes = "n[3-4]"`), hour, false, "write the names of exclude one by one: n[3-4]"},
		{"fails", body(`local x = nil + 1`), hour, false, "attempt to perform arithmetic on a nil value"},
		{"a code alone", "function slurm_job_submit() return slurm.ESLURM_INVALID_QOS end", hour, false, "refused: job_submit.lua refused it with -1"},
		{"no modify", body(``), hour, true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "rule"), bridge, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "job_submit.lua"), []byte(c.lua), 0o644); err != nil {
				t.Fatal(err)
			}
			q := rule.Ask(&api.SubmitRequest{Spec: c.job}, []api.Partition{{Name: "main", Default: true}, {Name: "gpu"}})
			q.UID, q.User, q.Update = 1000, "ada", c.update
			question, err := json.Marshal(q)
			if err != nil {
				t.Fatal(err)
			}
			text, err := sitehook.Program{Path: filepath.Join(dir, "rule"), Timeout: time.Minute}.Ask(t.Context(), question, rule.MaxAnswer)
			got := ""
			if err != nil {
				got = "failed: " + err.Error()
			} else if a, err := rule.Parse(text); err != nil {
				got = fmt.Sprintf("failed: %v: %s", err, text)
			} else if a.Refuse != "" {
				got = "refused: " + a.Refuse
			} else {
				s := c.job
				changes, err := a.Apply(&s)
				if got = api.RuleText(changes); a.Message != "" {
					got += " / " + a.Message
				}
				if err != nil {
					got = "failed: " + err.Error()
				}
			}
			if got != c.want && (c.want == "" || !strings.HasPrefix(got, "failed: ") || !strings.Contains(got, strings.TrimPrefix(c.want, "failed: "))) {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}

type noRecord struct{}

func (noRecord) Events([]api.Event)            {}
func (noRecord) Commit(time.Duration, int)     {}
func (noRecord) Plan(time.Duration, time.Time) {}
