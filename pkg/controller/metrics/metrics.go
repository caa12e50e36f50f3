// Package metrics is the controller's Prometheus side: names and units of the outside
// contract, counters fed by committed events, gauges read from the published view at
// scrape time. It holds no state that is not a figure.
//
// Begin with Metrics and View. It must not know the engine, the store or the network: figures are
// handed in.
package metrics

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"gangd/pkg/api"
)

// View is what gauges are read from; *engine.Engine is one.
type View interface {
	ShowNodes() *api.NodesReply
	// Running lists the jobs that have not ended, with their ranks.
	List(ctx context.Context, q *api.JobQuery) ([]api.Job, error)
	// EachMeasure gives what each member of running jobs has used up to now, each once.
	EachMeasure(f func(job int64, m *api.Measure))
}

// Metrics is a recorder for the engine and a page for Prometheus.
type Metrics struct {
	reg       *prometheus.Registry
	drained   *prometheus.CounterVec
	forced    prometheus.Counter
	completed *prometheus.CounterVec
	drainTime prometheus.Histogram
	waitTime  prometheus.Histogram
	finished  *prometheus.CounterVec
	requeues  *prometheus.CounterVec
	cycle     prometheus.Histogram
	lastCycle prometheus.Gauge
	commit    prometheus.Histogram
	stale     prometheus.Counter
	stalls    *prometheus.CounterVec
	notified  *prometheus.CounterVec
	backups   *prometheus.CounterVec
	backupAt  prometheus.Gauge
	backupOf  prometheus.Gauge
}

// The verdicts on a stall.
const (
	stallConfirmed = "confirmed"
	stallDismissed = "dismissed"
)

// New makes the metrics of one controller.
func New(version string) *Metrics {
	m := &Metrics{reg: prometheus.NewRegistry()}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		m.reg.MustRegister(c)
		return c
	}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
		m.reg.MustRegister(h)
		return h
	}
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
		m.reg.MustRegister(g)
		return g
	}
	m.backups = counter("gang_backups_total", "Backups that were due, by whether they were written.", "result")
	m.backupAt = gauge("gang_backup_last_success_timestamp_seconds", "When this controller wrote the last backup that was due; 0: none yet.")
	m.backupOf = gauge("gang_backup_last_success_bytes", "How large the store was in it.")
	m.drained = counter("gang_gangs_drained_total", "Drains begun, by cause.", "cause")
	m.forced = counter("gang_members_forced_total", "Members that needed KILL or never acknowledged their stop.").WithLabelValues()
	m.completed = counter("gang_drains_completed_total", "Drains completed, by outcome.", "outcome")
	m.finished = counter("gang_jobs_finished_total", "Jobs ended, by result and cause.", "result", "cause")
	m.requeues = counter("gang_requeues_total", "Gangs that returned to the queue, by cause.", "cause")
	m.stalls = counter("gang_stalls_total", "Ranks that stopped beating, by what their cards showed.", "verdict")
	for _, verdict := range []string{stallConfirmed, stallDismissed} {
		m.stalls.WithLabelValues(verdict) // a rate needs the zero before the first
	}
	m.notified = counter("gang_notify_deliveries_total", "Mails and posts to webhooks about jobs, by target and whether they were taken.",
		"target", "outcome")
	for _, outcome := range []string{"delivered", "failed"} {
		m.notified.WithLabelValues("mail", outcome)
	}
	m.stale = counter("gang_stale_reports_total", "Reports of an epoch that is not the current one, refused.").WithLabelValues()
	// 10 ms to 6 minutes: from a drain on an idle machine to grace + slack at their largest usual values.
	m.drainTime = histogram("gang_drain_duration_seconds", "From the start of a drain to its completion.",
		prometheus.ExponentialBuckets(0.01, 2, 16))
	// 1 ms to 12 days.
	m.waitTime = histogram("gang_job_wait_seconds", "From submission to the first start.", prometheus.ExponentialBuckets(0.001, 4, 16))
	m.cycle = histogram("gang_scheduler_cycle_seconds", "Duration of one plan.", prometheus.ExponentialBuckets(0.00001, 4, 10))
	m.commit = histogram("gang_store_commit_seconds", "Duration of one durable commit.", prometheus.ExponentialBuckets(0.0001, 2, 16))
	m.lastCycle = prometheus.NewGauge(prometheus.GaugeOpts{Name: "gang_scheduler_last_cycle_timestamp_seconds",
		Help: "Unix time of the last plan."})
	m.reg.MustRegister(m.lastCycle)
	about(m.reg, version, 1)
	return m
}

// Standby is the page of one of several controllers while it does not lead: nothing of the cluster's, which the leader
// has. behind is for how many seconds it has not had all commits.
func Standby(version string, behind func() float64) http.Handler {
	reg := prometheus.NewRegistry()
	about(reg, version, 0)
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "gang_standby_behind_seconds",
		Help: "How long ago this controller, which stands by, had all commits."}, behind))
	return promhttp.HandlerFor(reg, promhttp.HandlerOpts{})
}

// about is what each controller says of itself.
func about(reg *prometheus.Registry, version string, leads float64) {
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "gang_build_info", Help: "1, labelled with the version."}, []string{"version"})
	info.WithLabelValues(version).Set(1)
	lead := prometheus.NewGauge(prometheus.GaugeOpts{Name: "gang_controller_leads",
		Help: "1: this controller leads, and has the figures of the cluster. 0: it stands by."})
	lead.Set(leads)
	reg.MustRegister(info, lead)
}

// Attach adds the gauges that are read from a view at scrape time.
func (m *Metrics) Attach(v View) { m.reg.MustRegister(&collector{view: v}) }

// Handler is the page for Prometheus.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.reg, promhttp.HandlerOpts{})
}

// Commit counts one durable commit.
func (m *Metrics) Commit(d time.Duration, _ int) { m.commit.Observe(d.Seconds()) }

// Plan counts one plan.
func (m *Metrics) Plan(d time.Duration, at time.Time) {
	m.cycle.Observe(d.Seconds())
	m.lastCycle.Set(float64(at.UnixNano()) / 1e9)
}

// Notified counts a delivery of letters; target is empty for mail.
func (m *Metrics) Notified(target string, _ int, err error) {
	outcome := "delivered"
	if err != nil {
		outcome = "failed"
	}
	m.notified.WithLabelValues(cmp.Or(target, "mail"), outcome).Inc()
}

// Events counts committed events.
func (m *Metrics) Events(evs []api.Event) {
	for i := range evs {
		ev := &evs[i]
		switch ev.Type {
		case api.EventStarted:
			if ev.Seconds > 0 { // set at the first start only
				m.waitTime.Observe(ev.Seconds)
			}
		case api.EventDrainStarted:
			m.drained.WithLabelValues(string(ev.Cause)).Inc()
			if ev.Cause == api.CauseStalled {
				m.stalls.WithLabelValues(stallConfirmed).Inc()
			}
		case api.EventStallDismissed:
			m.stalls.WithLabelValues(stallDismissed).Inc()
		case api.EventMemberStopped:
			if ev.Forced {
				m.forced.Inc()
			}
		case api.EventDrainCompleted:
			m.completed.WithLabelValues(ev.Outcome).Inc()
			m.drainTime.Observe(ev.Seconds)
			if ev.Outcome == string(api.RankBlocked) {
				m.requeues.WithLabelValues(string(ev.Cause)).Inc()
			}
		case api.EventStaleRefused:
			m.stale.Inc()
		case api.EventEnded:
			m.finished.WithLabelValues(string(ev.State), string(ev.Cause)).Inc()
		}
	}
}

// BackedUp counts a backup of so many bytes; no time: it failed.
func (m *Metrics) BackedUp(at time.Time, bytes int64) {
	if at.IsZero() {
		m.backups.WithLabelValues("failed").Inc()
		return
	}
	m.backups.WithLabelValues("written").Inc()
	m.backupAt.Set(float64(at.Unix()))
	m.backupOf.Set(float64(bytes))
}
