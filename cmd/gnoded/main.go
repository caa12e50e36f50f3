// Command gnoded is the node daemon; see gnoded(8).
package main

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"

	"gangd/pkg/api"
	"gangd/pkg/auth"
	"gangd/pkg/cli"
	"gangd/pkg/config"
	"gangd/pkg/gpu"
	"gangd/pkg/gpu/nvmlgpu"
	"gangd/pkg/gpu/simgpu"
	"gangd/pkg/noded"
)

func main() {
	cli.Main(command())
}

func command() *cobra.Command {
	var file, name string
	var set []string
	cmd := &cobra.Command{
		Use:   "gnoded",
		Short: "the node daemon of a gangd cluster",
		Long: "Starts what the controller places on this machine, watches it, and says what is. It opens one connection\n" +
			"to the controller and listens on none. Its end, however it comes, touches no running job.",
		Example: `  gnoded join gang://TOKEN@login1:7420/FINGERPRINT     become a node of a cluster, once
  gnoded --config /etc/gangd/gnoded.toml               serve it, in the foreground
  gnoded --name=n1 --set cards=8x80G --set dir=/tmp/c  a node with simulated cards`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := config.LoadNode(file, name, set)
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, os.Interrupt)
			defer stop()
			return serve(ctx, cfg, logger(os.Stderr, cfg.LogFormat))
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "configuration `FILE` (TOML), see gnoded.toml(5)")
	cmd.Flags().StringVar(&name, "name", "", "`NAME` of this node (default: this host's)")
	cmd.Flags().StringArrayVar(&set, "set", nil, "override one setting, `KEY=VALUE`; may be repeated")
	cmd.AddCommand(joinCommand(), probeCommand())
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

func serve(ctx context.Context, cfg *config.Node, log *slog.Logger) error {
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
	bin := filepath.Dir(self)
	o := noded.Options{Name: cfg.Name, StateDir: cfg.StateDir, Address: cfg.Address, Version: api.Version,
		// A cluster in one directory is one person's, whoever that is; without root there is
		// no other user to become.
		SingleUser: cfg.Dir != "" || os.Geteuid() != 0,
		MinUID:     cfg.MinUID, Groups: cfg.Groups, CPUs: cfg.CPUs, Memory: cfg.Memory, Features: cfg.Features, GPU: provider,
		Shim: filepath.Join(bin, "gshim"), BinDir: bin, Log: log,
		Ready: func() {
			// Nobody listens when systemd did not start this; that is fine.
			_, _ = daemon.SdNotify(false, daemon.SdNotifyReady)
		}}
	stop, err := reach(ctx, cfg, &o)
	if err != nil {
		return err
	}
	defer stop()
	return noded.Run(ctx, o)
}

// reach says how the controller is reached. Over TLS the certificate is kept renewed
// until stop.
func reach(ctx context.Context, cfg *config.Node, o *noded.Options) (stop func(), err error) {
	if path, ok := strings.CutPrefix(cfg.Controller, "unix:"); ok {
		o.Network, o.Controller = "unix", path
		return func() {}, nil
	}
	var conf *tls.Config
	if conf, err = auth.NodeTLS(tlsDir(cfg)); err != nil {
		return nil, err
	}
	o.Network, o.Controller, o.TLS = "tcp", cfg.Controller, conf
	ctx, cancel := context.WithCancel(ctx)
	var renewing sync.WaitGroup
	renewing.Go(func() { auth.KeepRenewed(ctx, tlsDir(cfg), cfg.Controller, o.Log) })
	return func() { cancel(); renewing.Wait() }, nil
}

// cards is where the inventory and the samples come from; nil on a node without cards.
func cards(cfg *config.Node, log *slog.Logger) (gpu.Provider, error) {
	switch cfg.Cards {
	case "none":
		return nil, nil
	case "auto", "nvml":
		return nvmlgpu.New(nvmlgpu.Options{Log: log})
	}
	return simgpu.New(cfg.Cards, cfg.Name, cfg.SimGPUFile)
}

func logger(w io.Writer, format string) *slog.Logger {
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, nil))
	}
	return slog.New(slog.NewTextHandler(w, nil))
}
