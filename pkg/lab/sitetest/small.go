package sitetest

import (
	"fmt"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
)

const gib = 1 << 30

func number[T any](n T) *T { return &n }

// SmallNode is a node of the small site: 64 CPUs and four H100.
func SmallNode(i int) api.Hello {
	h := api.Hello{Node: fmt.Sprintf("n%d", i), StateID: fmt.Sprintf("state-n%d", i), Version: "1.2.3", BootID: fmt.Sprintf("boot-n%d", i),
		Address:     fmt.Sprintf("10.0.0.%d", i),
		Containment: "cgroup2", CPUs: 64, Shape: api.CPUShape{Sockets: 2, Cores: 16, Threads: 2}, MemoryBytes: 512 * gib, TmpBytes: 64 * gib,
		Features: []string{"ib"}, Reboots: i != 3,
		Limits: api.NodeLimits{Memory: api.LimitEnforced, Processes: api.LimitEnforced, CPUs: api.LimitEnforced, CPUSets: api.LimitEnforced}}
	if i == 2 {
		h.Limits = api.NodeLimits{Memory: api.LimitSampled, Processes: api.LimitSampled, CPUs: api.LimitNone, CPUSets: api.LimitAdvised,
			Reason: "no cgroup may be written"}
	}
	for k := range 4 {
		h.Cards = append(h.Cards, api.CardInfo{Index: k, UUID: card(i, k), Model: "H100", VRAMBytes: 80 * gib, NUMA: -1})
	}
	return h
}

func card(node, index int) string { return fmt.Sprintf("GPU-n%d-%d", node, index) }

// SmallSpec is what a job of the small site asks for, but for what it changes.
func SmallSpec(name string, size int) api.Spec {
	return api.Spec{Name: name, Size: size, Launch: api.LaunchRanks, CPUsPerRank: 2, MemoryPerRank: 16 * gib, Account: "lab",
		Priority: number(int64(500)),
		WorkDir:  "/home/ada/run", ScriptName: "train.sh", Script: []byte("#!/bin/sh\necho " + name + "\n"), SubmitHost: "login"}
}

// Empty is a site that has neither nodes nor jobs, but rows that were in its store before.
func Empty(t testing.TB, rows ...*gang.Changes) *Site {
	t.Helper()
	s := begin(t, 1, rows...)
	s.Play(Scene{Now, func(*Site) {}})
	return s
}

// Small is a site of four nodes with a bit of everything: a gang that runs again after a crash (12), one
// that waits (13), a held job (14), one that failed (15), an array (20), a lost node, a drained one, a broken
// card and a stranger on another. More scenes are played among its own.
func Small(t testing.TB, more ...Scene) *Site {
	t.Helper()
	s := begin(t, 12)
	s.Play(append(smallStory(), more...)...)
	return s
}

func smallStory() []Scene {
	return []Scene{
		At("08:00:00", func(s *Site) {
			for i := range 4 {
				s.Join(SmallNode(i + 1))
			}
			s.NodeDo("drain", "n2", "disk")
		}),
		At("09:00:00", func(s *Site) { s.Submit(Ada, trainSpec(), nil) }),
		At("09:00:00.007", func(s *Site) { s.Prepare(12) }),
		At("09:00:00.012", func(s *Site) {
			s.Start(12)
			s.File("n1", "/home/ada/run/gang-12.0.out", "epoch 1, rank 0\n")
		}),
		At("09:10:00", func(s *Site) {
			w := SmallSpec("a-very-long-name-of-a-job", 16)
			w.GPUsPerRank, w.VRAMBytes, w.MinNodes, w.Priority = 1, 40*gib, 4, number(int64(900))
			s.Submit(Ada, w, nil)
		}),
		At("09:20:00", func(s *Site) {
			h := SmallSpec("later", 1)
			h.Hold = true
			s.Submit(Grace, h, nil)
		}),
		At("09:05:00", func(s *Site) { s.NodeDo("resume", "n2", "") }),
		At("10:00:00", func(s *Site) { s.Submit(Ada, brokenSpec(), nil); s.Run(15) }),
		At("10:00:02", func(s *Site) {
			s.Note(15, "n2", api.RankNote{Rank: 0, Ready: true}, api.RankNote{Rank: 1, Ready: true})
		}),
		At("10:01:32", func(s *Site) { s.Exit(15, 1, 3) }),
		At("10:01:33", func(s *Site) { s.End(15, Stopped) }),
		At("10:30:00", func(s *Site) { s.NodeDo("drain", "n3", "new driver") }),
		At("10:54:50.500", func(s *Site) { s.Exit(12, 1, 1) }),
		At("10:54:51.700", func(s *Site) { s.End(12, Stopped) }),
		At("10:54:53", func(s *Site) {
			s.Prepare(12)
			s.Start(12, func(r *api.RankActual) {
				if r.Rank == 0 {
					r.OutStart = int64(len("epoch 1, rank 0\n"))
				}
			})
			s.File("n1", "/home/ada/run/gang-12.0.out", "epoch 1, rank 0\nepoch 2, rank 0\nstep 1200 loss 2.31\n")
			s.File("n1", "/home/ada/run/gang-12.1.out", "epoch 2, rank 1\n")
			s.File("n2", "/home/ada/run/gang-12.3.out", Denied)
		}),
		At("10:58:00", func(s *Site) {
			s.Restart(20)
			sweep := SmallSpec("sweep", 1)
			sweep.Partition, sweep.Begin = "long", Now.Add(-31*time.Second)
			s.Submit(Ada, sweep, &api.Array{Indices: []int{0, 1, 2, 3, 4, 5, 6, 7}, Limit: 2})
		}),
		At("11:30:00", func(s *Site) {
			s.Sample("n3", api.CardSample{UUID: card(3, 1), Unhealthy: "Xid 79: fallen off the bus"})
		}),
		At("11:49:00", func(s *Site) { s.Lose("n4") }),
		At("11:50:00", func(*Site) {}),
		At("11:59:29", func(s *Site) { s.Run(21) }),
		At("11:59:30", func(s *Site) { s.Run(20) }),
		At("12:00:00", func(s *Site) {
			idle := func(node, index int) api.CardSample { return api.CardSample{UUID: card(node, index)} }
			busy := func(node, index int) api.CardSample {
				return api.CardSample{UUID: card(node, index), UsedBytes: 37*gib + gib/2, Utilization: 97}
			}
			s.Sample("n1", busy(1, 0), busy(1, 1), idle(1, 2), idle(1, 3))
			s.Sample("n2", busy(2, 0), busy(2, 1), idle(2, 2), api.CardSample{UUID: card(2, 3), StrangersBytes: 3 * gib})
			s.Sample("n3", idle(3, 0), idle(3, 2), idle(3, 3))
			s.Note(12, "n1", api.RankNote{Rank: 0, Status: "step 1200 loss 2.31"})
		}),
	}
}

func trainSpec() api.Spec {
	r := SmallSpec("train-llm", 4)
	r.RanksPerNode, r.GPUsPerRank, r.VRAMBytes, r.TimeLimit, r.Priority = 2, 1, 40*gib, 12*time.Hour, number(int64(1000))
	r.NodeList, r.Exclude, r.Comment = []string{"n1", "n2", "n3"}, []string{"n4"}, "hello there"
	r.Notify = []api.Notify{{To: "ada@uni.example", Types: []api.NotifyType{api.NotifyEnd, api.NotifyFail, api.NotifyTimeLimit80,
		api.NotifyInvalidDepend}}, {Target: "chat", Types: api.NotifyDefault}}
	r.MaxRetries, r.Notice = number(2), &api.Notice{Signal: "TERM", Lead: 2 * time.Minute, Scope: api.ScopeRanks}
	return r
}

func brokenSpec() api.Spec {
	b := SmallSpec("broken", 2)
	b.Roles = []api.Role{{Name: "coordinator", Count: 1, CPUsPerRank: 2, EndsGang: true},
		{Name: "worker", Count: 1, CPUsPerRank: 4, MemoryPerRank: 8 * gib, GPUsPerRank: 1, GPUType: "h100", VRAMBytes: 40 * gib,
			Constraint: "ib"}}
	b.ReadyTimeout, b.TimeLimit, b.NodeList = time.Minute, time.Hour, []string{"n2"}
	return b
}
