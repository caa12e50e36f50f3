// Command gnoded is the node daemon; see gnoded(8).
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"gangd/pkg/api"
	"gangd/pkg/client/cli"
	"gangd/pkg/controller/config"
	"gangd/pkg/core/cpus"
	"gangd/pkg/core/finding"
	"gangd/pkg/node/gpu"
	"gangd/pkg/node/gpu/nvmlgpu"
	"gangd/pkg/node/gpu/simgpu"
	"gangd/pkg/node/noded"
	"gangd/pkg/node/proc"
	"gangd/pkg/node/sitehook"
	"gangd/pkg/wire/auth"
	"gangd/pkg/wire/lifesign"
	"gangd/pkg/wire/relay"
)

func main() {
	cli.Main(command())
}

func command() *cobra.Command {
	var file, name string
	var set []string
	var login bool
	cmd := &cobra.Command{
		Use:   "gnoded",
		Short: "the node daemon of a gangd cluster",
		Long: "Starts what the controller places on this machine, watches it, and says what is. It opens one connection\n" +
			"to the controller and listens on no network. Its end, however it comes, touches no running job.\n" +
			"With --login it is the relay of a login host: commands there reach the controller, and nothing runs.",
		Example: `  gnoded join gang://TOKEN@login1:7420/FINGERPRINT     become a node of a cluster, once
  gnoded --config /etc/gangd/gnoded.toml               serve it, in the foreground
  gnoded --login --config /etc/gangd/gnoded.toml       a login host
  gnoded --name=n1 --set cards=8x80G --set dir=/tmp/c  a node with simulated cards`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := proc.KeepFiles(); err != nil {
				return err
			}
			if login {
				set = append(set, "login=true")
			}
			cfg, err := config.LoadNode(file, name, set)
			if err != nil {
				return err
			}
			signs, err := lifesign.New()
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, os.Interrupt)
			defer stop()
			defer context.AfterFunc(ctx, signs.Stopping)()
			log := logger(os.Stderr, cfg.LogFormat)
			reload := &reload{file: file, name: name, set: set, hangups: lifesign.Hangups(), running: cfg, log: log, again: make(chan noded.Options)}
			found := &findings{check: func(ctx context.Context) finding.List { return config.CheckNode(ctx, file, name, set) }}
			return serve(ctx, cfg, signs, log, found, reload)
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "configuration `FILE` (TOML), see gnoded.toml(5)")
	cmd.Flags().StringVar(&name, "name", "", "`NAME` of this node (default: this host's)")
	cmd.Flags().StringArrayVar(&set, "set", nil, "override one setting, `KEY=VALUE`; may be repeated")
	cmd.Flags().BoolVar(&login, "login", false, "serve the commands of a login host and run nothing; as login = true")
	cmd.AddCommand(joinCommand(), checkCommand(), probeCommand())
	return cmd
}

// probeCommand is the child that talks to the cards' driver, see package nvmlgpu.
func probeCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "gpu-probe",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if status := nvmlgpu.ProbeMain(cmd.Context(), cmd.OutOrStdout()); status != 0 {
				return &cli.ExitError{Status: status}
			}
			return nil
		},
	}
}

func serve(ctx context.Context, cfg *config.Node, signs *lifesign.Signs, log *slog.Logger, found *findings,
	reload *reload) error {
	known := relay.OpenList(filepath.Join(cfg.StateDir, "relay"), cfg.Controllers, log)
	way, err := reach(ctx, cfg, known, log)
	if err != nil {
		return err
	}
	defer way.stop()
	passOn := relay.Options{Socket: cfg.Socket, Controllers: known, TLS: way.tls, Log: log, Optional: !cfg.SocketAsked,
		Private: cfg.Dir != "" || os.Geteuid() != 0 && !cfg.Login, Alone: cfg.Login}
	group, ctx := errgroup.WithContext(ctx)
	if cfg.Login {
		passOn.Ready = signs.Ready
		group.Go(func() error { return relay.Run(ctx, passOn) })
		group.Go(func() error { reload.keep(ctx); return nil }) // which says that all of a login host takes a restart
		return group.Wait()
	}
	owned := make(chan struct{}) // the node's state directory is this process's: so is its place for the relay
	if cfg.Socket != "" {
		group.Go(func() error {
			select {
			case <-owned:
				return relay.Run(ctx, passOn)
			case <-ctx.Done():
				return nil
			}
		})
	}
	group.Go(func() error { found.keep(ctx); return nil })
	group.Go(func() error { return serveNode(ctx, cfg, way, signs, log, found, reload, func() { close(owned) }) })
	group.Go(func() error {
		select {
		case <-owned:
			reload.keep(ctx)
		case <-ctx.Done():
		}
		return nil
	})
	return group.Wait()
}

func serveNode(ctx context.Context, cfg *config.Node, way *way, signs *lifesign.Signs, log *slog.Logger, found *findings,
	reload *reload, owned func()) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	provider, err := cards(cfg, log)
	if err != nil {
		return err
	}
	if provider != nil {
		defer provider.Close()
	}
	o, err := optionsOf(cfg, self)
	if err != nil {
		return err
	}
	reload.self = self
	o.GPU, o.Log, o.Signs, o.TLS, o.Enrol = provider, log, signs, way.tls, way.enrol
	o.Owned, o.Findings, o.Again = owned, found.now, reload.again
	return noded.Run(ctx, *o)
}

// optionsOf are those of a configuration, for the gnoded at a path.
func optionsOf(cfg *config.Node, self string) (*noded.Options, error) {
	bin := filepath.Dir(self)
	only, err := cpus.Parse(cfg.CPUList)
	if err != nil {
		return nil, err
	}
	limits, err := proc.JobLimits(cfg.JobLimits) // checked where they were read
	if err != nil {
		return nil, err
	}
	return &noded.Options{Name: cfg.Name, StateDir: cfg.StateDir, Address: cfg.Address, Version: api.Version,
		// A cluster in one directory is one person's, whoever that is; without root there is
		// no other user to become.
		SingleUser: cfg.Dir != "" || os.Geteuid() != 0,
		MinUID:     cfg.MinUID, Groups: cfg.Groups, CPUs: cfg.CPUs, Memory: cfg.Memory, Features: cfg.Features,
		RebootProgram: cfg.RebootProgram,
		Health:        noded.Health{Program: sitehook.Program{Path: cfg.HealthProgram, Timeout: cfg.HealthTimeout}, Interval: cfg.HealthInterval},
		Needs:         noded.Needs{Cards: cfg.ExpectCards, Memory: cfg.ExpectMemory, Mounts: cfg.RequireMounts, Names: cfg.RequireNames},
		Containers: noded.Containers{On: cfg.Containers, Images: cfg.ContainerImages, Mounts: cfg.ContainerMounts, Within: cfg.ContainerDirs,
			Import: noded.Import{Driver: cfg.ContainerDriver, Registries: cfg.Registries, Cache: cfg.ContainerCache, High: cfg.CacheHigh,
				Low: cfg.CacheLow, Timeout: cfg.ImportTimeout}},
		Private: noded.Private{Dirs: cfg.PrivateDirs, Path: cfg.PrivatePath, Size: cfg.PrivateSize},
		Hooks: noded.Hooks{Prolog: cfg.Prolog, Epilog: cfg.Epilog, TaskProlog: cfg.TaskProlog, TaskEpilog: cfg.TaskEpilog,
			Timeout: cfg.HookTimeout},
		Shim: shimBeside(bin), BinDir: bin, Commands: cfg.Socket,
		CPUSets: noded.CPUs{Bind: cfg.CPUBind == "cores" || cfg.CPUBind == "auto" && cfg.Dir == "", Must: cfg.CPUBind == "cores",
			Near: cfg.MemoryNear, Only: only},
		CgroupBase: cfg.Cgroup, JobLimits: limits, Processes: int64(cfg.Processes),
		Controllers: cfg.Controllers}, nil
}

// way is how controllers are reached. Over TLS the certificate is kept renewed until stop.
type way struct {
	tls   *tls.Config // nil: unix sockets
	enrol func(ctx context.Context) (*tls.Config, error)
	stop  func()
}

func reach(ctx context.Context, cfg *config.Node, known *relay.List, log *slog.Logger) (*way, error) {
	ctx, cancel := context.WithCancel(ctx)
	var renewing sync.WaitGroup
	w := &way{stop: func() { cancel(); renewing.Wait() }}
	secured := func() (*tls.Config, error) {
		conf, err := auth.NodeTLS(tlsDir(cfg))
		if err != nil {
			return nil, err
		}
		if err := rightRole(cfg); err != nil {
			return nil, err
		}
		renewing.Go(func() { auth.KeepRenewed(ctx, tlsDir(cfg), known.Addresses, log) })
		return conf, nil
	}
	var err error
	own, here := strings.CutPrefix(cfg.Controllers[0], "unix:")
	if !here {
		w.tls, err = secured()
	} else if cfg.Dir == "" && os.Geteuid() == 0 { // else all controllers are one person's, on this host
		if w.tls, err = secured(); errors.Is(err, auth.ErrNotJoined) {
			err = nil
			w.enrol = func(asked context.Context) (*tls.Config, error) {
				if err := auth.JoinHere(asked, own, cfg.Name, tlsDir(cfg)); err != nil {
					return nil, err
				}
				return secured()
			}
		}
	}
	if err != nil {
		w.stop()
		return nil, err
	}
	return w, nil
}

// rightRole refuses a certificate that can't do what is configured: the controller would
// refuse every call, and nobody looks for that in its log first.
func rightRole(cfg *config.Node) error {
	login, err := auth.IsLogin(tlsDir(cfg))
	switch {
	case err != nil:
		return err
	case cfg.Login && !login:
		return fmt.Errorf("%s holds a node's certificate, and this is to be a login host; join again with a line from gangd token new --login "+
			"--node=%s", tlsDir(cfg), cfg.Name)
	case !cfg.Login && login:
		return fmt.Errorf("%s holds a login host's certificate, which can't run jobs; set login = true, or join again with a line from gangd "+
			"token new --node=%s", tlsDir(cfg), cfg.Name)
	}
	return nil
}

// shimBeside is the gshim of this gnoded: beside it, as make builds them, or where make install puts what nobody
// starts by hand.
func shimBeside(bin string) string {
	const name = "gshim"
	if installed := filepath.Join(filepath.Dir(bin), "libexec", "gangd", name); !executable(filepath.Join(bin, name)) &&
		executable(installed) {
		return installed
	}
	return filepath.Join(bin, name)
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// cards is where the inventory and the samples come from; nil on a node without cards.
func cards(cfg *config.Node, log *slog.Logger) (gpu.Provider, error) {
	switch cfg.Cards {
	case "none":
		return nil, nil
	case "auto", "nvml":
		return nvmlgpu.New(nvmlgpu.Options{Log: log, XidFile: filepath.Join(cfg.StateDir, "xids"), Boot: proc.BootID()})
	}
	return simgpu.New(cfg.Cards, cfg.Name, cfg.SimGPUFile)
}

func logger(w io.Writer, format string) *slog.Logger {
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, nil))
	}
	return slog.New(slog.NewTextHandler(w, nil))
}
