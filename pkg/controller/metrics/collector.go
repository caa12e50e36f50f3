package metrics

import (
	"context"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"gangd/pkg/api"
)

// collector reads gauges from the view when they are asked for: between scrapes they cost
// nothing, and they can't disagree with what gqueue and ginfo show.
type collector struct{ view View }

var (
	jobsDesc     = desc("gang_jobs", "Jobs that have not ended, by state and partition.", "state", "partition")
	nodeUpDesc   = desc("gang_node_up", "1 when the node takes work.", "node")
	totalDesc    = desc("gang_gpu_memory_total_bytes", "VRAM of a card.", "node", "gpu")
	usedDesc     = desc("gang_gpu_memory_used_bytes", "VRAM in use by gangs.", "node", "gpu")
	reservedDesc = desc("gang_gpu_memory_reserved_bytes", "VRAM promised to gangs.", "node", "gpu")
	strangeDesc  = desc("gang_gpu_memory_strangers_bytes", "VRAM in use by processes that are not ours.", "node", "gpu")
	utilDesc     = desc("gang_gpu_utilization_ratio", "Utilisation of a card, 0 to 1.", "node", "gpu")
	healthDesc   = desc("gang_gpu_healthy", "0 when the card is quarantined.", "node", "gpu")
	jobDesc      = desc("gang_job_info", "1 for each running job, to join what is of a job with whose it is.", "job", "user", "account",
		"partition")
	cpusDesc  = desc("gang_job_cpus", "CPUs that a job holds on a node.", "job", "node")
	cpuDesc   = desc("gang_job_cpu_seconds_total", "CPU time of a job's processes on a node, as of the last minute.", "job", "node")
	peakDesc  = desc("gang_job_memory_peak_bytes", "The most memory that a job's processes held on a node.", "job", "node")
	askedDesc = desc("gang_job_memory_asked_bytes", "Memory that a job asked for on a node.", "job", "node")
	infoDesc  = desc("gang_job_gpu_info", "1 for each card of each running rank.", "job", "epoch", "user", "node", "gpu", "uuid")
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// Describe is part of prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{jobsDesc, nodeUpDesc, totalDesc, usedDesc, reservedDesc, strangeDesc, utilDesc, healthDesc, infoDesc,
		jobDesc, cpusDesc, cpuDesc, peakDesc, askedDesc} {
		ch <- d
	}
}

// Collect is part of prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	cards := map[string]string{} // UUID -> index
	for _, n := range c.view.ShowNodes().Nodes {
		gauge(nodeUpDesc, flag(n.State == api.NodeUp), n.Name)
		for _, card := range n.Cards {
			gpu := strconv.Itoa(card.Index)
			cards[card.UUID] = gpu
			gauge(totalDesc, float64(card.VRAMBytes), n.Name, gpu)
			if card.UsedBytes >= 0 {
				gauge(usedDesc, float64(card.UsedBytes), n.Name, gpu)
			}
			gauge(reservedDesc, float64(card.ReservedBytes), n.Name, gpu)
			gauge(strangeDesc, float64(card.StrangersBytes), n.Name, gpu)
			gauge(healthDesc, flag(card.State == api.CardOK), n.Name, gpu)
			if card.Utilization >= 0 {
				gauge(utilDesc, float64(card.Utilization)/100, n.Name, gpu)
			}
		}
	}
	jobs, err := c.view.List(context.Background(), &api.JobQuery{})
	if err != nil {
		return // an empty cluster has no jobs to count
	}
	type key struct{ state, partition string }
	count := map[key]int{}
	for _, j := range jobs {
		count[key{string(j.State), j.Partition}]++
		if j.State == api.JobRunning {
			gauge(jobDesc, 1, strconv.FormatInt(j.JobID, 10), j.User, j.Account, j.Partition)
		}
		for _, r := range j.Ranks {
			if r.State != api.RankRunning && r.State != api.RankPreempting {
				continue
			}
			for _, uuid := range r.Cards {
				gauge(infoDesc, 1, strconv.FormatInt(j.JobID, 10), strconv.Itoa(j.Epoch), j.User, r.Node, cards[uuid], uuid)
			}
		}
	}
	c.view.EachMeasure(func(id int64, m *api.Measure) {
		job := strconv.FormatInt(id, 10)
		gauge(cpusDesc, float64(m.CPUs), job, m.Node)
		if m.CPUSeconds != nil {
			ch <- prometheus.MustNewConstMetric(cpuDesc, prometheus.CounterValue, *m.CPUSeconds, job, m.Node)
		}
		if m.MemoryPeak != nil {
			gauge(peakDesc, float64(*m.MemoryPeak), job, m.Node)
		}
		if m.Memory > 0 {
			gauge(askedDesc, float64(m.Memory), job, m.Node)
		}
	})
	for k, n := range count {
		gauge(jobsDesc, float64(n), k.state, k.partition)
	}
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
