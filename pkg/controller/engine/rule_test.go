package engine

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/core/rule"
	"gangd/pkg/lab/disk"
)

// ruleRig is an engine whose site has a rule: answer gives what it writes.
type ruleRig struct {
	*rig
	asked []rule.Question
	mu    sync.Mutex
}

func newRuleRig(t *testing.T, answer func(q *rule.Question) (string, error)) *ruleRig {
	r := &ruleRig{}
	r.rig = newRigWith(t, disk.Open(t), func(o *Options) {
		o.Policy.Partitions = append(o.Policy.Partitions, api.Partition{Name: "gpu"})
		o.Rule = func(_ context.Context, _ uint32, question []byte) ([]byte, error) {
			var q rule.Question
			if err := json.Unmarshal(question, &q); err != nil {
				t.Error(err)
			}
			r.mu.Lock()
			r.asked = append(r.asked, q)
			r.mu.Unlock()
			text, err := answer(&q)
			return []byte(text), err
		}
	})
	return r
}

func ruled(t *testing.T, r *ruleRig, key string, s api.Spec, who Caller) (*api.SubmitReply, error) {
	t.Helper()
	return r.Submit(t.Context(), &api.SubmitRequest{Key: key, Spec: s}, who)
}

// TestRuleChanges: what the rule changed is what is queued, said to who submits, kept with the job and shown, and not asked again
// at a requeue or for a repeated submission.
func TestRuleChanges(t *testing.T) {
	r := newRuleRig(t, func(*rule.Question) (string, error) {
		return `{"change":{"partition":"gpu","priority":7,"time_limit_seconds":60},"message":"moved to gpu"}`, nil
	})
	s := spec(1)
	s.Ruled = []api.RuleChange{{Field: "made up by the client"}}
	reply, err := ruled(t, r, "k", s, me)
	if err != nil {
		t.Fatal(err)
	}
	const text = "partition to gpu, priority to 7, time_limit_seconds to 60"
	if want := "moved to gpu|the site's rule changed " + text; !strings.HasPrefix(strings.Join(reply.Warnings, "|"), want) {
		t.Errorf("warned %q", reply.Warnings)
	}
	j, err := r.One(t.Context(), api.JobRef{ID: reply.JobID, Index: -1}, me)
	if err != nil {
		t.Fatal(err)
	}
	if j.Partition != "gpu" || j.Priority != 7 || j.TimeLimit.Seconds() != 60 {
		t.Errorf("queued as %s, %d, %v", j.Partition, j.Priority, j.TimeLimit)
	}
	d, err := r.Detail(t.Context(), j)
	if err != nil || api.RuleText(d.Job.Ruled) != text {
		t.Errorf("shown as %q, %v", api.RuleText(d.Job.Ruled), err)
	}
	if why, err := r.Explain(t.Context(), j); err != nil || !strings.HasSuffix(why.Why, "\nthe site's rule changed "+text) {
		t.Errorf("%+v, %v", why, err)
	}
	if again, err := ruled(t, r, "k", spec(1), me); err != nil || again.JobID != reply.JobID {
		t.Errorf("repeated: %+v, %v", again, err)
	}
	r.node("n1", 4) // on which it is started, to be requeued
	if out, err := r.Act(t.Context(), "requeue", &api.ActionRequest{JobQuery: api.JobQuery{Refs: []api.JobRef{{ID: reply.JobID, Index: -1}}}}, me,
		anyone); err != nil || len(out.Results) != 1 {
		t.Errorf("requeue: %+v, %v", out, err)
	}
	if len(r.asked) != 1 || r.asked[0].User != "ada" || r.asked[0].UID != 1000 || r.asked[0].Job["ruled"] != nil {
		t.Errorf("asked %+v", r.asked)
	}
}

// TestRuleRefuses, with its sentence, and where there is no answer, nothing is queued.
func TestRuleRefuses(t *testing.T) {
	var text string
	var failed error
	r := newRuleRig(t, func(*rule.Question) (string, error) { return text, failed })
	for _, c := range []struct {
		text string
		err  error
		code api.Code
		want string
	}{
		{`{"refuse":"name a project with --account"}`, nil, api.CodePermission, "the site's rule refuses this job: name a project with --account"},
		{`{"change":{"partition":"nowhere"}}`, nil, api.CodeInvalid, `no partition "nowhere" (the site's rule changed partition to nowhere)`},
		{`{"change":{"comment":"` + strings.Repeat("x", 2000) + `"}}`, nil, api.CodeConflict, "gave no answer that can be used"},
		{`{"change":{"time_limit_seconds":-1}}`, nil, api.CodeConflict, "gave no answer that can be used"},
		{`{"change":{"size":9}}`, nil, api.CodeConflict, "it changes size, which a rule can't"},
		{"what?", nil, api.CodeConflict, "its answer can't be read"},
		{"", nil, api.CodeConflict, "it answered nothing"},
		{"", errors.New("/etc/rule: no answer within 200 milliseconds"), api.CodeConflict, "so that the job is not taken: /etc/rule: no answer"},
		{"", &api.Error{Code: api.CodeTooMany, Message: "wait"}, api.CodeTooMany, "wait"},
	} {
		text, failed = c.text, c.err
		if reply, err := ruled(t, r, "k", spec(1), me); err == nil || api.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60s, %v: %+v, %v; want %s, %q", c.text, c.err, reply, err, c.code, c.want)
		}
	}
	if n := r.view.snapshot(nil); len(n) > 0 {
		t.Errorf("%d jobs are queued", len(n))
	}
}

// TestRuleRanksNobodyByItsSilence: what only an admin may ask for is refused before the rule is asked.
func TestRuleRanksNobodyByItsSilence(t *testing.T) {
	r := newRuleRig(t, func(*rule.Question) (string, error) { return `{"change":{"nice":3}}`, nil })
	s := spec(1)
	s.Priority = new(int64(9))
	if _, err := ruled(t, r, "k", s, me); api.CodeOf(err) != api.CodePermission || len(r.asked) > 0 {
		t.Errorf("%v, asked %d times", err, len(r.asked))
	}
}

// TestRuleIsAskedOnce for an array, for each line of a cron table, and without anything being queued for --test-only.
func TestRuleIsAskedOnce(t *testing.T) {
	r := newRuleRig(t, func(*rule.Question) (string, error) { return `{"change":{"comment":"seen"}}`, nil })
	if _, err := r.Submit(t.Context(), &api.SubmitRequest{Key: "a", Spec: spec(1), Array: &api.Array{Indices: []int{0, 1, 2}}}, me); err != nil {
		t.Fatal(err)
	}
	if len(r.asked) != 1 || r.asked[0].Array == nil {
		t.Errorf("asked %+v", r.asked)
	}
	if reply, err := r.Submit(t.Context(), &api.SubmitRequest{Spec: spec(1), TestOnly: true}, me); err != nil || len(r.asked) != 2 ||
		!r.asked[1].TestOnly || !strings.Contains(strings.Join(reply.Warnings, "|"), "comment to seen") {
		t.Errorf("%+v, %v, asked %+v", reply, err, r.asked)
	}
	table := &api.CrontabRequest{Text: "0 1 * * * a\n0 2 * * * b\n", Jobs: []api.CronJob{{First: 1, Last: 1, Spec: spec(1)}, {First: 2, Last: 2, Spec: spec(1)}}}
	if _, err := r.PutCrontab(t.Context(), table, me, me.User); err != nil || len(r.asked) != 4 || r.asked[3].Job["cron"] == nil {
		t.Errorf("%v, asked %+v", err, r.asked)
	}
}

// TestRuleIsNotPassedByUpdates: an owner's change is held against the rule, once for what comes out alike; an admin's is not.
func TestRuleIsNotPassedByUpdates(t *testing.T) {
	text := `{}`
	r := newRuleRig(t, func(q *rule.Question) (string, error) {
		if q.Job["partition"] == "gpu" {
			return text, nil
		}
		return `{}`, nil
	})
	reply, err := r.Submit(t.Context(), &api.SubmitRequest{Key: "a", Spec: spec(1), Array: &api.Array{Indices: []int{0, 1, 2, 3}}}, me)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		answer, want string
		who          Caller
		asked        int
	}{
		{`{"refuse":"gpu is for jobs with cards"}`, "the site's rule refuses this job: gpu is for jobs with cards", me, 1},
		{`{"change":{"comment":"x"}}`, "the site's rule refuses this change: it would change comment to x", me, 1},
		{`no`, "gave no answer that can be used", me, 1},
		{`no`, "", Caller{UID: 1000, User: "ada", Admin: true}, 0},
		{`{}`, "", me, 1},
	} {
		text, r.asked = c.answer, nil
		out, err := r.Update(t.Context(), &api.UpdateRequest{JobQuery: api.JobQuery{Refs: []api.JobRef{{ID: reply.JobID, Index: -1}}},
			Partition: new("gpu")}, c.who, anyone, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range out.Results {
			if got := out.Results[i].Error; c.want == "" && got != nil || c.want != "" && (got == nil || !strings.Contains(got.Message, c.want)) {
				t.Errorf("%s, element %d: %v, want %q", c.answer, i, got, c.want)
			}
		}
		if len(r.asked) != c.asked || c.asked > 0 && (!r.asked[0].Update || r.asked[0].Script != "#!/bin/sh\n") {
			t.Errorf("%s: asked %d times, want %d: %+v", c.answer, len(r.asked), c.asked, r.asked)
		}
	}
}
