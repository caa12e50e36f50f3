package noded

import (
	"context"
	"crypto/tls"
	"log/slog"

	"gangd/pkg/api"
	"gangd/pkg/node/gpu"
	"gangd/pkg/node/proc"
	"gangd/pkg/wire/lifesign"
)

// Options are what a daemon is started with.
type Options struct {
	Name     string
	StateDir string // made when it is not there
	Address  string // where ranks of other nodes reach this one
	Version  string

	Controllers []string    // "unix:/path" or "host:port", at least one
	TLS         *tls.Config // with "host:port"
	// Enrol gets a certificate from the controller of this host, by whose socket alone the node is served so far;
	// nil: it has one, or needs none.
	Enrol func(ctx context.Context) (*tls.Config, error) `json:"-"`
	// Owned is called once no other process can have the state directory; nil: nobody waits for it.
	Owned func() `json:"-"`

	// SingleUser: every rank runs as whoever started the daemon, which need not be root.
	SingleUser bool
	MinUID     uint32   // lower uids are refused; not in single-user mode
	Groups     []string // users outside all of these are refused; empty: anyone

	CPUs     int   // 0: detect
	CPUSets  CPUs  // which of them are whose
	Memory   int64 // bytes, 0: detect
	Features []string
	GPU      gpu.Provider // nil: no cards

	RebootProgram string // empty: none
	Health        Health // without a path: none
	Needs         Needs
	Containers    Containers
	Hooks         Hooks
	Private       Private

	Shim       string        // path of gshim
	BinDir     string        // of all programs, for the ranks' PATH; empty: none
	Commands   string        // socket on which this host's relay answers the commands of jobs; empty: no relay
	CgroupBase string        // directory to make members' cgroups in; empty: found; [proc.NoCgroups]: none
	JobLimits  []proc.Rlimit // over those of a login
	Processes  int64         // that a member may have; 0: a part of what the machine can have
	Log        *slog.Logger
	// Again gives the options of a configuration that was read again, of which those hold that can; nil: it is read once.
	Again <-chan Options `json:"-"`
	// Findings are what is wrong with the configuration and the host, looked up beside; nil: nobody looks.
	Findings func() []api.DoctorFinding `json:"-"`
	Signs    *lifesign.Signs            // to the service manager; nil: there is none
}
