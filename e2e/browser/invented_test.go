package browser

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gangd/e2e/trial"
	"gangd/pkg/api"
	"gangd/pkg/controller/web"
	"gangd/pkg/wire/auth"
	"gangd/pkg/wire/people"
)

// invented is a site of which nothing is true: the page of a real gangd, and answers that are made up, for states and sizes
// that a cluster of tests does not come to. Every figure, name and time in it is drawn.
type invented struct {
	mu        sync.Mutex
	now       time.Time
	jobs      []api.Job
	order     api.QueueOrder
	nodes     []api.Node
	details   map[int64]*api.JobDetail
	day       api.DayReply
	frames    chan string // told to who follows
	admin     bool
	silent    bool // who follows is told nothing yet
	followers int  // how many follow now
}

const gib = int64(1) << 30

var inventedUsers = []string{"mira", "tomas", "ayla", "ben", "jun", "sofia", "nils", "edda"}
var inventedAccounts = []string{"nlp", "vision", "vision", "nlp", "speech", "bio", "bio", "speech"}
var inventedNames = []string{"llama3-8b-sft", "vit-huge", "diffusion-xl", "code-dpo", "eval-harness", "rl-ppo", "notebook", "asr-conformer", "protein-fold", "clip-b", "whisper-ft", "mixtral-sft", "moe-router", "dino-v3", "tts-large", "seg-any", "rerank"}

// invent draws a site of so many nodes and jobs.
func invent(nodes, jobs int) *invented {
	rnd := rand.New(rand.NewPCG(7, uint64(nodes*100000+jobs)))
	s := &invented{now: time.Now(), details: map[int64]*api.JobDetail{}, frames: make(chan string, 1024), admin: true}
	s.inventNodes(rnd, nodes)
	s.inventJobs(rnd, jobs)
	s.inventDay()
	return s
}

func (s *invented) inventNodes(rnd *rand.Rand, n int) {
	for _, p := range []struct {
		name, prefix, model string
		cards               int
		part                float64
		vram                int64
	}{{"h100", "h", "NVIDIA H100", 8, 0.5, 80 * gib}, {"a100", "a", "NVIDIA A100", 8, 0.34, 80 * gib}, {"dev", "d", "NVIDIA A40", 4, 0.16, 48 * gib}} {
		count := int(math.Round(float64(n) * p.part))
		if n == 1 {
			count = map[string]int{"h100": 1}[p.name]
		}
		for i := range count {
			node := api.Node{Name: fmt.Sprintf("%s%02d", p.prefix, i+1), State: api.NodeUp, Partitions: []string{p.name, "all"}, Features: []string{p.name, "ib"}, CPUs: 96, MemoryBytes: 1024 * gib, Version: "v0.9.0", Containment: "cgroup v2", Jobs: []int64{}}
			if n > 99 {
				node.Name = fmt.Sprintf("%s%03d", p.prefix, i+1)
			}
			for c := range p.cards {
				node.Cards = append(node.Cards, api.Card{Index: c, UUID: fmt.Sprintf("GPU-%s-%d", node.Name, c), Model: p.model, VRAMBytes: p.vram, State: api.CardOK, Jobs: []int64{}, NUMA: -1})
			}
			switch {
			case n > 5 && rnd.Float64() < 0.03 || n > 5 && p.prefix == "a" && i == 1:
				node.State, node.Reason, node.DrainUser, node.DrainTime = api.NodeDrained, "fan noise, vendor on Monday", "root", s.now.Add(-20*time.Hour)
			case n > 5 && rnd.Float64() < 0.01 || n > 99 && p.prefix == "h" && i == 7:
				node.State, node.Reason, node.LastSeen = api.NodeLost, "silent for 4m", s.now.Add(-4*time.Minute)
			case n > 5 && p.prefix == "h" && i == 2:
				node.Cards[4].State, node.Cards[4].Reason = api.CardQuarantined, "ECC errors, set aside by root"
			case n > 5 && p.prefix == "d" && i == 0:
				node.Cards[3].StrangersBytes = 11 * gib
			}
			s.nodes = append(s.nodes, node)
		}
	}
}

func (s *invented) inventJobs(rnd *rand.Rand, n int) {
	id := int64(4100)
	free := func(node *api.Node) (out []int) {
		for i := range node.Cards {
			if c := &node.Cards[i]; node.State == api.NodeUp && c.State == api.CardOK && len(c.Jobs) == 0 && c.StrangersBytes == 0 {
				out = append(out, i)
			}
		}
		return out
	}
	base := func(k int) api.Job {
		id++
		u := k % len(inventedUsers)
		j := api.Job{JobID: id, Name: inventedNames[k%len(inventedNames)], User: inventedUsers[u], UID: uint32(1000 + u), Account: inventedAccounts[u], State: api.JobPending, Reason: "Resources", Size: 1, MinNodes: 1,
			Nodes: []string{}, Ranks: []api.Rank{}, GPUsPerRank: 1, CPUsPerRank: 8, MemoryBytes: 64 * gib, Priority: int64(1000 - k), TimeLimitSeconds: int64([]int{1800, 7200, 28800, 43200, 86400, 172800}[rnd.IntN(6)]),
			SubmitTime: s.now.Add(-time.Duration(rnd.IntN(300)+5) * time.Minute), GraceSeconds: 30, WorkDir: "/home/" + inventedUsers[u] + "/train", Command: "train/sft.sh", StdOut: "out-%j.txt", Launch: api.LaunchRanks, Budgets: map[api.Cause]api.Budget{}}
		if k%3 == 0 {
			j.Notice = &api.NoticeView{Signal: "SIGUSR1", LeadSeconds: 120}
		}
		return j
	}
	running := min(n, max(1, len(s.nodes)))
	if n > 7 {
		running = min(n/2, 2*len(s.nodes)/3+2)
	}
	at := 0
	for k := 0; k < running && at < len(s.nodes); k++ {
		j := base(k)
		j.State, j.Reason, j.Epoch = api.JobRunning, "None", 1
		j.StartTime = s.now.Add(-time.Duration(rnd.IntN(900)+2) * time.Minute)
		if j.TimeLimitSeconds < int64(s.now.Sub(j.StartTime)/time.Second) {
			j.TimeLimitSeconds = 172800
		}
		j.SubmitTime = j.StartTime.Add(-37 * time.Minute)
		over := 1
		if rnd.Float64() < 0.4 {
			over = 1 << rnd.IntN(3)
		}
		busy, used := 60+rnd.IntN(40), int64(20+rnd.IntN(58))
		if k%9 == 7 {
			busy = 0
		}
		for range over {
			for at < len(s.nodes) && len(free(&s.nodes[at])) == 0 {
				at++
			}
			if at == len(s.nodes) {
				break
			}
			node := &s.nodes[at]
			cards := free(node)
			if over == 1 && rnd.Float64() < 0.5 {
				cards = cards[:1+rnd.IntN(len(cards))]
			}
			for _, c := range cards {
				card := &node.Cards[c]
				card.Jobs, card.ReservedBytes = []int64{j.JobID}, card.VRAMBytes
				card.UsedBytes, card.Utilization = min(card.VRAMBytes, (used-int64(c%3)*2)*gib), min(100, busy+rnd.IntN(4))
				if k == 1 && c == 3 {
					card.Utilization, card.UsedBytes = 0, 2*gib
				}
				j.Ranks = append(j.Ranks, api.Rank{Rank: len(j.Ranks), State: api.RankRunning, Node: node.Name, Cards: []string{card.UUID}, StartTime: j.StartTime, LastBeat: s.now.Add(-time.Duration(1+c%4) * time.Second), Status: "epoch 8, step 176"})
			}
			node.Jobs = append(node.Jobs, j.JobID)
			node.CPUsUsed += 8 * len(cards)
			node.MemoryUsed += 64 * gib * int64(len(cards))
			j.Nodes = append(j.Nodes, node.Name)
			if over > 1 {
				at++
			}
		}
		if len(j.Ranks) == 0 {
			id--
			break
		}
		j.Size, j.Cards, j.Status, j.Partition = len(j.Ranks), len(j.Ranks), "epoch 8, step 176", s.partitionOf(j.Nodes[0])
		j.LastBeat = s.now.Add(-2 * time.Second)
		s.jobs = append(s.jobs, j)
		s.inventRunning(rnd, &j, k == 1)
	}
	var parts []string
	element := 0
	for k := len(s.jobs); k < n; k++ {
		j := base(k)
		j.Partition = []string{"h100", "a100", "dev"}[k%3]
		j.Size = []int{1, 2, 4, 8, 8, 16, 32}[rnd.IntN(7)]
		j.Cards = j.Size
		switch {
		case n > 20 && k%20 >= 12 && k%20 < 18 || n > 5000 && k > 200: // arrays
			if k%20 == 12 && (n <= 5000 || k <= 212) || element == 0 {
				element = 0
			}
			first := j.JobID - int64(element)
			index := element
			j.ArrayJobID, j.ArrayIndex, j.ArrayLimit, j.Name, j.Size, j.Cards, j.Reason = first, &index, 4, "sweep-lr", 1, 1, "JobArrayTaskLimit"
			j.User, j.Account, j.UID = "jun", "speech", 1004
			element++
			if index == 0 {
				j.State, j.Reason, j.Cause, j.Verdict, j.StartTime, j.EndTime = api.JobFailed, "NonZeroExitCode", api.CauseCrash, "rank 0 exited with code 1", s.now.Add(-40*time.Minute), s.now.Add(-12*time.Minute)
			}
		case k%17 == 3:
			element = 0
			j.Held, j.Reason = "user", "JobHeldUser"
			s.order.Whys = append(s.order.Whys, api.QueueWhy{Jobs: strconv.FormatInt(j.JobID, 10), Text: fmt.Sprintf("held by its owner; gctl release %d lets it go", j.JobID)})
		case k%13 == 4:
			element = 0
			j.Reason, j.Dependency = "Dependency", fmt.Sprintf("afterok:%d(unfulfilled)", j.JobID-3)
		case k == n-1 && n > 20:
			element = 0
			j.State, j.Cause, j.Reason, j.Name = api.JobFailed, api.CauseCrash, "NonZeroExitCode", "sft-long"
			j.SubmitTime = s.now.Add(-5*time.Hour - 10*time.Minute)
			j.StartTime, j.EndTime, j.Epoch, j.Size, j.Cards = s.now.Add(-5*time.Hour), s.now.Add(-48*time.Minute), 2, 8, 8
			j.Verdict = "rank 5 exited with code 1: the gang was stopped"
			five, one := 5, 1
			j.TriggerRank, j.ExitCode = &five, &one
			s.inventFailed(&j)
		default:
			element = 0
			if len(s.order.Starts) > 0 {
				j.Reason = "Priority"
			} else {
				j.Partition = "h100,a100" // with --gpus=h100:8
			}
			parts = append(parts, strconv.FormatInt(j.JobID, 10))
			if n := len(s.order.Starts); n < 100 {
				why := fmt.Sprintf("room for %d of %d ranks now, each needs 1 card and 8 CPUs", n%3, max(j.Cards, 1))
				if n > 2 {
					why = fmt.Sprintf("what is free is kept for jobs %s and %s", parts[n%3], parts[n%3+1])
				}
				s.order.Whys = append(s.order.Whys, api.QueueWhy{Jobs: parts[len(parts)-1], Text: why})
			}
			if len(s.order.Starts) < 500 {
				s.order.Starts = append(s.order.Starts, api.QueueStart{Job: j.JobID, At: s.now.Add(time.Duration(25+17*len(s.order.Starts)) * time.Minute).Truncate(time.Minute), Sure: len(s.order.Starts)%2 == 0})
			}
		}
		s.jobs = append(s.jobs, j)
	}
	s.order.Order = strings.Join(parts, ",")
	if s.order.Starts == nil {
		s.order.Starts = []api.QueueStart{}
	}
}

func (s *invented) partitionOf(name string) string {
	for i := range s.nodes {
		if s.nodes[i].Name == name {
			return s.nodes[i].Partitions[0]
		}
	}
	return ""
}

func series(rnd *rand.Rand, mean float64) api.Points {
	out := make(api.Points, 60)
	for i := range out {
		out[i] = uint8(max(0, min(100, mean+6*math.Sin(float64(i)*1.7)+4*rnd.Float64()-map[bool]float64{true: mean * 0.7}[i%20 == 19])))
	}
	return out
}

func (s *invented) inventRunning(rnd *rand.Rand, j *api.Job, idle bool) {
	ran := s.now.Sub(j.StartTime).Seconds()
	now := api.Attempt{JobID: j.JobID, Attempt: 2, Epoch: 2, StartTime: j.StartTime, Nodes: j.Nodes, ExitCodes: []int{}}
	var cards []float64
	for _, name := range j.Nodes {
		cpu := 61.0
		m := api.Measure{Node: name, Seconds: ran, CPUs: 64, Memory: 512 * gib, CPU: &api.Figure{Seconds: ran, Mean: cpu, Max: 99}, MemoryPeak: new(int64), Series: &api.MeasureSeries{Step: ran / 60, Use: series(rnd, 60), Memory: series(rnd, 40)}}
		*m.MemoryPeak = 321 * gib
		for i := range s.nodes {
			for c := range s.nodes[i].Cards {
				card := &s.nodes[i].Cards[c]
				if s.nodes[i].Name != name || !slices.Contains(card.Jobs, j.JobID) {
					continue
				}
				mean, still, joules := float64(card.Utilization), ran*0.04, ran*520
				if idle && c == 3 {
					mean, still = 0, ran
				}
				cards = append(cards, mean)
				m.Cards = append(m.Cards, api.CardMeasure{UUID: card.UUID, Index: c, Model: card.Model, VRAMBytes: card.VRAMBytes, Utilization: &api.Figure{Seconds: ran, Mean: mean, Max: 100}, VRAM: &api.Figure{Seconds: ran, Mean: float64(card.UsedBytes), Max: float64(card.UsedBytes)}, IdleSeconds: &still, Joules: &joules,
					Series: &api.MeasureSeries{Step: ran / 60, Use: series(rnd, mean), Memory: series(rnd, 100*float64(card.UsedBytes)/float64(card.VRAMBytes))}})
				if mean == 0 {
					clear(m.Cards[len(m.Cards)-1].Series.Use)
				}
			}
		}
		now.Measures = append(now.Measures, m)
	}
	sum := 0.0
	for _, c := range cards {
		sum += c
	}
	gpu, cpu, mem := sum/float64(max(1, len(cards))), 61.0, 62.7
	now.Efficiency = &api.Efficiency{Seconds: ran, GPUPercent: &gpu, CPUPercent: &cpu, MemoryPercent: &mem, MemoryPeak: now.Measures[0].MemoryPeak}
	d := &api.JobDetail{SchemaVersion: api.SchemaVersion, Job: *j, Attempts: []api.Attempt{
		{JobID: j.JobID, Attempt: 1, Epoch: 1, Cause: api.CauseNodeLost, StartTime: j.SubmitTime.Add(4 * time.Minute), EndTime: j.SubmitTime.Add(21 * time.Minute), Nodes: j.Nodes, ExitCodes: []int{}, GPUSeconds: 1020 * int64(j.Cards), Text: "h10 was lost; requeued by gangd"}, now}}
	s.details[j.JobID] = d
}

func (s *invented) inventFailed(j *api.Job) {
	five := 5
	for r := range 8 {
		x := api.Rank{Rank: r, State: api.RankDone, Node: "h02", Signal: 15, StartTime: j.StartTime, EndTime: j.EndTime, LastBeat: j.EndTime.Add(-time.Second)}
		if r == 5 {
			one := 1
			x.Signal, x.ExitCode = 0, &one
		}
		j.Ranks = append(j.Ranks, x)
	}
	a := api.Attempt{JobID: j.JobID, Attempt: 2, Epoch: 2, Cause: api.CauseCrash, TriggerRank: &five, StartTime: j.StartTime.Add(30 * time.Minute), EndTime: j.EndTime, Nodes: []string{"h02"}, ExitCodes: []int{143, 143, 143, 143, 143, 1, 143, 143}, GPUSeconds: 8 * 11640, VRAMPeak: 79 * gib, Code: 1, Text: "rank 5 exited with code 1"}
	for r := range 8 {
		a.Ends = append(a.Ends, api.AttemptEnd{Rank: r, MS: map[bool]float64{true: 0, false: 812 + float64(r)}[r == 5], Own: r == 5})
	}
	j.Nodes = []string{"h02"}
	gpu := 84.0
	a.Efficiency = &api.Efficiency{GPUPercent: &gpu, Advice: []api.Advice{{Rule: "vram", Text: "VRAM peaked at 79 of 80 GiB: a smaller batch leaves room for evaluation"}}}
	s.details[j.JobID] = &api.JobDetail{SchemaVersion: api.SchemaVersion, Job: *j, Attempts: []api.Attempt{{JobID: j.JobID, Attempt: 1, Epoch: 1, Cause: api.CausePreempted, StartTime: j.StartTime, EndTime: j.StartTime.Add(26 * time.Minute), Nodes: []string{"h01"}, ExitCodes: []int{}, GPUSeconds: 8 * 1560}, a}}
}

func (s *invented) inventDay() {
	s.day = api.DayReply{SchemaVersion: api.SchemaVersion, StepSeconds: 600, Start: s.now.Unix()/600*600 - 143*600}
	all, given, busy := 0, 0, 0.0
	for i := range s.nodes {
		for c := range s.nodes[i].Cards {
			all++
			if card := &s.nodes[i].Cards[c]; len(card.Jobs) > 0 {
				given++
				busy += float64(card.Utilization) / 100
			}
		}
	}
	put := func(to *[]*int, v float64) { n := int(math.Round(v)); *to = append(*to, &n) }
	for i := range 144 {
		x := float64(i)
		if i > 60 && i < 64 { // gangd was away
			s.day.Usable, s.day.Given, s.day.Busy, s.day.Asked = append(s.day.Usable, nil), append(s.day.Given, nil), append(s.day.Busy, nil), append(s.day.Asked, nil)
			continue
		}
		g := float64(given) * (0.9 + 0.1*math.Sin(x/20)) * math.Min(1, 0.6+x/300)
		if i > 140 {
			g = float64(given)
		}
		put(&s.day.Usable, float64(all)*map[bool]float64{true: 0.94, false: 1}[i > 90 && i < 110])
		put(&s.day.Given, g)
		put(&s.day.Busy, g*(busy/math.Max(1, float64(given)))*(0.95+0.05*math.Sin(x/5)))
		put(&s.day.Asked, math.Max(0, 60+50*math.Sin(x/23)+x/2)*float64(min(1, len(s.order.Starts))))
	}
}

// ServeHTTP answers as gangd would.
func (s *invented) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	say := func(v any) { w.Header().Set("Content-Type", "application/json"); _ = json.NewEncoder(w).Encode(v) }
	switch path := r.URL.Path; {
	case path == "/v1/live":
		s.mu.Unlock()
		s.follow(w, r)
		s.mu.Lock()
	case path == "/v1/day":
		d := s.day
		d.Node = r.URL.Query().Get("node")
		say(d)
	case path == "/v1/limits":
		say(api.LimitsReply{SchemaVersion: 1, UserCards: 48, CardsHeld: 34, Accounts: []api.AccountLimits{{Name: "nlp", Cards: 96, CardsHeld: 61, Quota: 32, SharePercent: 40, UsedPercent: 31}}})
	case path == "/v1/ledger":
		say(s.ledger(r))
	case path == "/v1/nodes":
		say(api.NodesReply{SchemaVersion: 1, Nodes: s.nodes, Partitions: []api.Partition{{Name: "h100", Nodes: []string{"h[01-12]"}, Default: true, MaxTime: 72 * time.Hour}, {Name: "a100", Nodes: []string{"a[01-08]"}, MaxTime: 72 * time.Hour}, {Name: "dev", Nodes: []string{"d[01-04]"}, MaxTime: time.Hour, State: api.PartitionDrain}, {Name: "all"}}})
	case path == "/v1/ping":
		f := api.Figures{Submitted: 48123, Started: 51210, Completed: 44012, Failed: 2110, LastPlan: 1800 * time.Microsecond, LongestPlan: 41 * time.Millisecond}
		up := 0
		for i := range s.nodes {
			if s.nodes[i].State == api.NodeUp {
				up++
			}
		}
		say(api.PingReply{SchemaVersion: 1, Version: "v0.9.0", PID: 812, StartTime: s.now.Add(-300 * time.Hour), Lineage: 901223, NodesUp: up, Nodes: len(s.nodes), Figures: &f})
	case path == "/v1/outbox":
		say(map[string]any{"lines": []any{}, "given_up": []any{}})
	case path == "/v1/reservations":
		say(map[string]any{"reservations": []map[string]any{{"name": "maintenance", "start_time": s.now.Add(30 * time.Hour), "end_time": s.now.Add(34 * time.Hour), "nodes": []string{"h[01-04]"}}}})
	case path == "/v1/events":
		say(s.events(r))
	case path == "/v1/history":
		s.history(w, r)
	case path == "/v1/logs":
		j := s.find(r.URL.Query().Get("job"))
		s.mu.Unlock()
		s.logs(w, r, j)
		s.mu.Lock()
	case strings.HasSuffix(path, "/why"):
		j := s.find(strings.Split(path, "/")[3])
		say(api.WhyReply{SchemaVersion: 1, JobID: j.JobID, State: j.State, Reason: j.Reason, Why: s.why(j)})
	case strings.HasSuffix(path, "/script"):
		_, _ = io.WriteString(w, "#!/bin/bash\n#GANG --size=8 --gpus-per-rank=1 --vram=40G\n#GANG --time=12:00:00 --signal=USR1@120 --requeue\n\nexport NCCL_DEBUG=WARN\nsource ~/env/bin/activate\npython train.py --config conf/sft.yaml --resume auto \"$@\"\n")
	case strings.HasPrefix(path, "/v1/jobs/"):
		j := s.find(strings.Split(path, "/")[3])
		if j == nil {
			w.WriteHeader(404)
			say(map[string]string{"code": "not_found", "message": "no job " + strings.Split(path, "/")[3], "hint": "list jobs with gqueue, ended ones with gacct"})
			return
		}
		if d := s.details[j.JobID]; d != nil {
			say(d)
			return
		}
		say(api.JobDetail{SchemaVersion: 1, Job: *j, Attempts: []api.Attempt{}})
	default:
		say(map[string]any{"results": []any{}})
	}
}

// why is what a job waits for: the first of the queue as it is told in full.
func (s *invented) why(j *api.Job) string {
	if len(s.order.Starts) == 0 || s.order.Starts[0].Job != j.JobID {
		for _, w := range s.order.Whys {
			if w.Jobs == strconv.FormatInt(j.JobID, 10) {
				return w.Text + "\n"
			}
		}
		return "waits for " + cmp.Or(strings.TrimSuffix(j.Dependency, "(unfulfilled)"), "its turn") + "\n"
	}
	start := s.order.Starts[0].At.Format(time.TimeOnly)
	return fmt.Sprintf("1st of %d in the queue; %s\nh[02-05] are kept for it; starts there at the latest at %s, by the time limits of what runs there, unless gangs that need less come before\n",
		strings.Count(s.order.Order, ",")+1, s.order.Whys[0].Text, start) +
		"h03: 0 of 8 cards free, needs 1 on each; card 4 is set aside: ECC errors; held by job 4104, free at the latest at " + start + "\n" +
		"h[02,04-05]: 0 of 8 cards free, needs 1; held by jobs 4102 and 4104, free at the latest at " + start + "\n" +
		"h[06-07]: 0 of 8 cards free, needs 1; held by job 4105, free at the latest at " + s.order.Starts[4].At.Format(time.TimeOnly) + "\n" +
		"the same without the card type h100 would start now\n"
}

func (s *invented) find(ref string) *api.Job {
	id, index, _ := strings.Cut(ref, "_")
	for i := range s.jobs {
		j := &s.jobs[i]
		if strconv.FormatInt(j.JobID, 10) == ref || index != "" && strconv.FormatInt(j.ArrayJobID, 10) == id && j.ArrayIndex != nil && strconv.Itoa(*j.ArrayIndex) == index {
			return j
		}
	}
	return nil
}

func (s *invented) ledger(r *http.Request) api.LedgerReply {
	out := api.LedgerReply{SchemaVersion: 1, Rows: []api.LedgerRow{}}
	hour := int64(3600 * 1000)
	if strings.HasPrefix(r.URL.Query().Get("by"), "day") {
		for i, held := range []int64{40, 210, 288, 301, 260, 96, 22, 188, 340, 402, 388, 371, 420, 154} {
			day := api.LedgerDay(s.now.AddDate(0, 0, i-13))
			out.Rows = append(out.Rows, api.LedgerRow{LedgerKey: api.LedgerKey{Day: day, Cause: api.CauseCompleted}, LedgerFigures: api.LedgerFigures{CardMS: held * hour, BusyCardMS: held * hour * 7 / 10, SeenCardMS: held * hour, IdleCardMS: held * hour / 12}},
				api.LedgerRow{LedgerKey: api.LedgerKey{Day: day, Cause: api.CauseCrash}, LedgerFigures: api.LedgerFigures{CardMS: 9 * hour, LostCardMS: 8 * hour, BusyCardMS: 5 * hour, SeenCardMS: 9 * hour}})
		}
		return out
	}
	for i, u := range inventedUsers {
		held := int64(900-100*i) * hour
		out.Rows = append(out.Rows, api.LedgerRow{LedgerKey: api.LedgerKey{User: u, Account: inventedAccounts[i]}, LedgerFigures: api.LedgerFigures{CardMS: held, BusyCardMS: held * int64(9-i) / 10, SeenCardMS: held, IdleCardMS: held / int64(20-2*i), LostCardMS: held / 30}})
	}
	return out
}

func (s *invented) events(r *http.Request) api.EventsReply {
	ev := func(seq int64, back time.Duration, kind api.EventType, node, text string) api.Event {
		return api.Event{Seq: seq, Time: s.now.Add(-back), Type: kind, Node: node, Text: text}
	}
	if q := r.URL.Query(); q.Get("job") == "" {
		return api.EventsReply{SchemaVersion: 1, Events: []api.Event{ev(1, 30*time.Hour, api.EventNodeUp, "a02", ""), ev(2, 20*time.Hour, api.EventNodeDrained, "a02", "fan noise, vendor on Monday (root)"), ev(3, 9*time.Hour, api.EventCardState, "h03", "card 4: ECC errors"), ev(4, 4*time.Minute, api.EventNodeLost, "h08", "")}}
	}
	j := s.find(r.URL.Query().Get("job"))
	if j == nil {
		return api.EventsReply{SchemaVersion: 1, Events: []api.Event{}}
	}
	back := func(t time.Time) time.Duration { return s.now.Sub(t) }
	out := []api.Event{ev(1, back(j.SubmitTime), api.EventSubmitted, "", "")}
	if d := s.details[j.JobID]; d != nil {
		for i, a := range d.Attempts {
			out = append(out, ev(int64(10*i+2), back(a.StartTime)+2*time.Second, api.EventReserved, strings.Join(a.Nodes, ","), ""), ev(int64(10*i+3), back(a.StartTime), api.EventStarted, "", ""))
			if a.Cause != "" {
				out = append(out, ev(int64(10*i+4), back(a.EndTime), api.EventDrainStarted, "", cmp.Or(a.Text, string(a.Cause))))
			}
		}
	}
	if j.State.Ended() {
		out = append(out, ev(100, back(j.EndTime), api.EventEnded, "", ""))
	}
	return api.EventsReply{SchemaVersion: 1, Events: out}
}

func (s *invented) history(w http.ResponseWriter, r *http.Request) {
	var q api.HistoryQuery
	b, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(b, &q)
	for i := range s.jobs {
		j := s.jobs[i]
		if len(q.Users) > 0 && i < 14 { // of whom it is asked, and ended
			j.User, j.State, j.Cause, j.EndTime, j.Verdict = q.Users[0], api.JobCompleted, api.CauseCompleted, s.now.Add(-time.Duration(i)*9*time.Hour), ""
			if i%5 == 2 {
				j.State, j.Cause, j.Verdict = api.JobFailed, api.CauseOOM, "rank 2 was ended for want of memory: used 100G of 100G"
			}
			gpu := float64(91 - 6*i)
			a := api.Attempt{JobID: j.JobID, Attempt: 1, Cause: j.Cause, GPUSeconds: int64(40+90*i) * 3600, Nodes: []string{}, ExitCodes: []int{}, Efficiency: &api.Efficiency{GPUPercent: &gpu}}
			if i == 3 || i == 4 {
				a.Efficiency.Advice = []api.Advice{{Rule: []string{"", "", "", "share", "lead"}[i], Text: []string{"", "", "", "held a card for 40 h at 4 %: --share --vram=20G leaves the rest to others", "lost 85 h since its last checkpoint: save at a notice, --signal=USR1@120"}[i]}}
			}
			_ = json.NewEncoder(w).Encode(api.JobDetail{SchemaVersion: 1, Job: j, Attempts: []api.Attempt{a}})
		}
	}
}

// logs is what a job wrote: the rank that failed its last lines, one that runs those of now, and it goes on.
func (s *invented) logs(w http.ResponseWriter, r *http.Request, j *api.Job) {
	w.Header().Set("Content-Type", "text/event-stream")
	var b strings.Builder
	for i := range 24 {
		fmt.Fprintf(&b, "epoch 8 step %d  loss %.3f  lr 2.1e-4  1,204 img/s\n", 153+i, 1.9-float64(i)*0.003)
	}
	rank, over := 0, j == nil || j.State.Ended()
	if over {
		rank = 5
		b.WriteString("Traceback (most recent call last):\n  File \"train/eval.py\", line 88, in forward\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 13.00 GiB <b>not html</b>\n")
	}
	fmt.Fprintf(w, "data: {\"rank\":%d,\"epoch\":2,\"offset\":100,\"data\":%q}\n\n", rank, base64.StdEncoding.EncodeToString([]byte(b.String())))
	if over {
		_, _ = io.WriteString(w, "event: end\ndata: {}\n\n")
		return
	}
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

func (s *invented) all() string {
	b := api.AppendLineHeader(nil)
	for i := range s.jobs {
		b = api.AppendLine(b, &s.jobs[i])
	}
	return "event: all\ndata: " + strings.ReplaceAll(strings.TrimSuffix(string(b), "\n"), "\n", "\ndata: ") + "\n\n"
}

// follow is the stream of the queue. What is put into frames is told as it is.
func (s *invented) follow(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	s.mu.Lock()
	s.followers++
	defer func() { s.mu.Lock(); s.followers--; s.mu.Unlock() }()
	nodes, _ := json.Marshal(s.nodes)
	if s.nodes == nil {
		nodes = []byte("[]")
	}
	order, _ := json.Marshal(s.order)
	if s.silent {
		s.mu.Unlock()
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		return
	}
	_, _ = io.WriteString(w, s.all()+"event: nodes\ndata: "+string(nodes)+"\n\nevent: order\ndata: "+string(order)+"\n\n")
	s.mu.Unlock()
	out := http.NewResponseController(w)
	for {
		_ = out.Flush()
		select {
		case <-r.Context().Done():
			return
		case f := <-s.frames:
			_, _ = io.WriteString(w, f)
		case <-time.After(time.Second):
			_, _ = io.WriteString(w, "event: beat\ndata: {}\n\n")
		}
	}
}

// followedBy waits until so many follow.
func (s *invented) followedBy(t *testing.T, want int) {
	t.Helper()
	for give := time.Now().Add(trial.Patience); ; time.Sleep(10 * time.Millisecond) {
		s.mu.Lock()
		n := s.followers
		s.mu.Unlock()
		if n == want {
			return
		}
		if time.Now().After(give) {
			t.Fatalf("%d follow, want %d", n, want)
		}
	}
}

// fromDisk serves the page's files as they are in GANG_STATIC, so that one who changes them looks without building.
func fromDisk(site http.Handler) http.Handler {
	dir := os.Getenv("GANG_STATIC")
	if dir == "" {
		return site
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := filepath.Join(dir, filepath.Base(r.URL.Path))
		if _, err := os.Stat(name); err != nil || r.Method != "GET" || strings.Count(r.URL.Path, "/") > 1 || r.URL.Path == "/" {
			site.ServeHTTP(w, r)
			return
		}
		if strings.HasSuffix(name, ".js") {
			w.Header().Set("Content-Type", "text/javascript")
		}
		http.ServeFile(w, r, name)
	})
}

// serve serves the page of the site, and gives a browser of it that is logged in as its first user.
func (s *invented) serve(t *testing.T) *lab {
	t.Helper()
	path := chromium()
	if path == "" {
		t.Skip("no chromium")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended, err := web.OpenEnded(filepath.Join(t.TempDir(), "ended"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	me := auth.Identity{Kind: auth.KindUser, UID: 1000, GID: 1000, User: "mira", Admin: s.admin}
	site, err := web.New(web.Options{Calls: s, URL: "http://" + l.Addr().String(), Key: make([]byte, 32), Ended: ended, Log: slog.New(slog.DiscardHandler),
		User:   func(context.Context, uint32, uint32) auth.Identity { return me },
		Lookup: func(context.Context, string) (people.User, error) { return people.User{}, nil }})
	if err != nil {
		t.Fatal(err)
	}
	hs := &http.Server{Handler: fromDisk(site)}
	go func() { _ = hs.Serve(l) }()
	t.Cleanup(func() { _ = hs.Close() })
	out := &lab{page: "http://" + l.Addr().String(), links: func() string {
		w := httptest.NewRecorder()
		site.Links().ServeHTTP(w, httptest.NewRequest("POST", "/v1/web", strings.NewReader("{}")).WithContext(auth.With(context.Background(), me)))
		var reply api.WebReply
		if err := json.Unmarshal(w.Body.Bytes(), &reply); err != nil {
			t.Fatal(err)
		}
		return reply.URL
	}}
	out.T = t
	out.browse(t, path)
	return out
}
