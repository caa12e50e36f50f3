package browser

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/tracing"
	"github.com/chromedp/chromedp"

	"gangd/e2e/trial"
)

// task is a piece of work of a page's own thread, in milliseconds that the thread ran for: what a busy machine holds up is not counted.
type task struct {
	ms   float64
	work map[string]float64 // what is in it, each kind by itself: a layout that a function asks for is in both
}

func (k task) String() string {
	names := slices.SortedFunc(maps.Keys(k.work), func(a, b string) int { return cmp.Compare(k.work[b], k.work[a]) })
	var out []string
	for _, n := range names {
		if k.work[n] >= 1 {
			out = append(out, fmt.Sprintf("%s %.0f", n, k.work[n]))
		}
	}
	return fmt.Sprintf("%.0f ms (%s)", k.ms, strings.Join(out, ", "))
}

// longest is the longest task of three tries at most: one that waits for memory on a busy machine does not wait each time.
func (b *tab) longest(do func()) task {
	b.t.Helper()
	least := b.tasks(do)[0]
	over, _ := b.ctx.Deadline()
	for try := 1; try < 3 && least.ms > 100 && time.Until(over) > trial.Patience; try++ {
		if k := b.tasks(do)[0]; k.ms < least.ms {
			least = k
		}
	}
	return least
}

// tasks gives the work of the page's thread while do runs, the longest task first.
func (b *tab) tasks(do func()) []task {
	b.t.Helper()
	b.traced = make(chan struct{})
	config := &tracing.TraceConfig{RecordMode: tracing.TraceConfigRecordModeRecordAsMuchAsPossible, IncludedCategories: []string{"devtools.timeline", "disabled-by-default-devtools.timeline", "v8"}, ExcludedCategories: []string{"*"}}
	b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, tracing.Start, tracing.StartParams{TraceConfig: config})
		return err
	}))
	do()
	b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		if _, err := cdp.Call(ctx, t, tracing.End, cdp.Empty{}); err != nil {
			return err
		}
		select {
		case <-b.traced:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}))
	type event struct {
		Name string  `json:"name"`
		At   float64 `json:"ts"`
		Took float64 `json:"dur"`
		Ran  float64 `json:"tdur"`
		PID  int     `json:"pid"`
		TID  int     `json:"tid"`
		Args struct {
			Name string `json:"name"`
		} `json:"args"`
	}
	type thread struct{ pid, tid int }
	own := map[thread]bool{}
	var all []event
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, raw := range b.trace {
		var e event
		if json.Unmarshal(raw, &e) != nil {
			continue // arguments of another shape: none of ours
		}
		if e.Name == "thread_name" && e.Args.Name == "CrRendererMain" {
			own[thread{e.PID, e.TID}] = true
		}
		all = append(all, e)
	}
	b.trace = nil
	all = slices.DeleteFunc(all, func(e event) bool { return !own[thread{e.PID, e.TID}] || e.Took == 0 })
	slices.SortStableFunc(all, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.PID, b.PID), cmp.Compare(a.At, b.At), cmp.Compare(b.Took, a.Took))
	})
	var out []task
	pid, end := 0, 0.0
	for _, e := range all {
		switch {
		case e.Name == "RunTask":
			out = append(out, task{ms: e.Ran / 1000, work: map[string]float64{}})
			pid, end = e.PID, e.At+e.Took
		case len(out) > 0 && e.PID == pid && e.At < end:
			out[len(out)-1].work[e.Name] += e.Ran / 1000
		}
	}
	slices.SortStableFunc(out, func(a, b task) int { return cmp.Compare(b.ms, a.ms) })
	return out
}
