package api

import (
	"time"

	"gangd/pkg/api/rlimit"
)

// SlurmVersions is each Slurm that the commands speak as, by Slurm's names.
var SlurmVersions = []string{"22.05", DefaultSlurmVersion, "24.11"}

// DefaultSlurmVersion is the one that sites have which say nothing.
const DefaultSlurmVersion = "23.11"

// How CUDA_VISIBLE_DEVICES names cards.
const (
	CardsByUUID   = "uuid"
	CardsByNumber = "number" // as Slurm does
	CardsAuto     = "auto"   // number for jobs that were submitted by Slurm's names, UUID for others
)

// Settings are the time-outs, budgets and thresholds of the site. The field tags are the
// keys of the configuration file and of `gangd dev --set`. To nodes StartTimeout goes under the name
// of the first release: a node that is not upgraded yet would take none at all for no time.
type Settings struct {
	Licences             []Pool        `json:"-" mapstructure:"licence"`
	StartTimeout         time.Duration `json:"reservation_timeout" mapstructure:"start_timeout"`
	Grace                time.Duration `json:"grace" mapstructure:"grace"`
	DrainSlack           time.Duration `json:"drain_slack" mapstructure:"drain_slack"`
	NodeTimeout          time.Duration `json:"node_timeout" mapstructure:"node_timeout"`
	RebootTimeout        time.Duration `json:"reboot_timeout" mapstructure:"reboot_timeout"`
	Lease                time.Duration `json:"lease" mapstructure:"lease"` // 0: off
	Heartbeat            time.Duration `json:"heartbeat" mapstructure:"heartbeat"`
	RetryBackoff         time.Duration `json:"retry_backoff" mapstructure:"retry_backoff"`
	RetryBackoffMax      time.Duration `json:"retry_backoff_max" mapstructure:"retry_backoff_max"`
	StallTimeout         time.Duration `json:"stall_timeout" mapstructure:"stall_timeout"`
	StallConfirmSamples  int           `json:"stall_confirm_samples" mapstructure:"stall_confirm_samples"`
	StallConfirmInterval time.Duration `json:"stall_confirm_interval" mapstructure:"stall_confirm_interval"`
	GPUIdlePercent       int           `json:"gpu_idle_percent" mapstructure:"gpu_idle_percent"`
	MemoryStaticBytes    int64         `json:"memory_static_bytes" mapstructure:"memory_static_bytes"`
	HostStaticBytes      int64         `json:"host_static_bytes" mapstructure:"host_static_bytes"` // in a second
	GPUHangWindow        time.Duration `json:"gpu_hang_window" mapstructure:"gpu_hang_window"`
	GPUHangLoadGrace     time.Duration `json:"gpu_hang_load_grace" mapstructure:"gpu_hang_load_grace"`
	StallRetries         int           `json:"stall_retries" mapstructure:"stall_retries"`
	StallDump            time.Duration `json:"stall_dump" mapstructure:"stall_dump"` // longest wait for the ranks' stacks; 0: none are taken
	IdleLimit            time.Duration `json:"idle_limit" mapstructure:"idle_limit"` // 0: off
	IdleEnd              time.Duration `json:"idle_end" mapstructure:"idle_end"`     // from the warning to the end; 0: it stays a warning
	IdleRetries          int           `json:"idle_retries" mapstructure:"idle_retries"`
	IdleExempt           []string      `json:"idle_exempt" mapstructure:"idle_exempt"` // users
	LaunchRetries        int           `json:"launch_retries" mapstructure:"launch_retries"`
	NodeLostRetries      int           `json:"node_lost_retries" mapstructure:"node_lost_retries"`
	LaunchStrikes        int           `json:"launch_strikes" mapstructure:"launch_strikes"` // failed launches in a row that drain a node
	SharedVRAMGrace      time.Duration `json:"shared_vram_grace" mapstructure:"shared_vram_grace"`
	PreemptMinRun        time.Duration `json:"preempt_min_run" mapstructure:"preempt_min_run"`
	InvalidDependency    string        `json:"invalid_dependency" mapstructure:"invalid_dependency"` // "cancel" or "wait"
	SlurmVersion         string        `json:"slurm_version" mapstructure:"slurm_version"`           // one of [SlurmVersions]
	PropagateLimits      string        `json:"propagate_limits" mapstructure:"propagate_limits"`     // as --propagate: ALL, NONE, or names
	MPIDefault           string        `json:"mpi_default" mapstructure:"mpi_default"`               // [MPINone], [MPIPMI2], [MPIPMIx]
	// [CardsByUUID], [CardsByNumber] or [CardsAuto]
	CardNames string `json:"card_names" mapstructure:"card_names"`
	// "FIRST-LAST", see [PortRange]; empty: none
	Ports string `json:"ports" mapstructure:"ports"`
	// of one user that have not ended; 0: no cap
	UserJobs int `json:"user_jobs" mapstructure:"user_jobs"`
	// their scripts, environments and options; 0: no cap
	UserBytes int64 `json:"user_bytes" mapstructure:"user_bytes"`
	// of everybody that have not ended; 0: no cap
	MaxJobs int `json:"max_jobs" mapstructure:"max_jobs"`
	// ended jobs stay in memory (and in gqueue -t all) so long
	KeepEnded time.Duration `json:"keep_ended" mapstructure:"keep_ended"`
	// ended jobs stay in the store so long; 0: for ever
	HistoryKeep time.Duration `json:"history_keep" mapstructure:"history_keep"`
	// so many of those that ended last stay; 0: all
	HistoryJobs int `json:"history_jobs" mapstructure:"history_jobs"`
}

// DefaultSettings are the values of a site that sets nothing.
func DefaultSettings() Settings {
	return Settings{
		StartTimeout:         30 * time.Second,
		Grace:                15 * time.Second,
		DrainSlack:           30 * time.Second,
		NodeTimeout:          30 * time.Second,
		RebootTimeout:        15 * time.Minute,
		Lease:                10 * time.Minute,
		Heartbeat:            time.Second,
		RetryBackoff:         time.Second,
		RetryBackoffMax:      5 * time.Minute,
		StallTimeout:         120 * time.Second,
		StallConfirmSamples:  3,
		StallConfirmInterval: time.Second,
		GPUIdlePercent:       5,
		MemoryStaticBytes:    5 << 30,
		HostStaticBytes:      4 << 20,
		GPUHangWindow:        300 * time.Second,
		GPUHangLoadGrace:     600 * time.Second,
		StallRetries:         3,
		StallDump:            300 * time.Millisecond,
		LaunchRetries:        3,
		NodeLostRetries:      5,
		LaunchStrikes:        3,
		SharedVRAMGrace:      30 * time.Second,
		InvalidDependency:    InvalidCancel,
		SlurmVersion:         DefaultSlurmVersion,
		PropagateLimits:      rlimit.All,
		MPIDefault:           MPINone,
		CardNames:            CardsAuto,
		Ports:                "12000-12999", // the example of Slurm's manual; below those of MASTER_PORT
		UserJobs:             100_000,
		UserBytes:            256 << 20,
		MaxJobs:              1_000_000,
		KeepEnded:            5 * time.Minute, // Slurm's MinJobAge
		HistoryJobs:          1_000_000,       // about 4 GB
	}
}
