package cli

import (
	"context"
	"crypto/rand"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline"
)

// jobRetry is how often a command in a job tries again while its node daemon or the
// controller restarts.
const jobRetry = 200 * time.Millisecond

// Rank is what commands inside a job ask the node's daemon for.
type Rank interface {
	Put(ctx context.Context, key string, data []byte) (*api.CallResult, error)
	Get(ctx context.Context, rank int) ([]byte, error)
	Barrier(ctx context.Context, key, name string) (*api.CallResult, error)
	Ready(ctx context.Context, role string) (*api.CallResult, error)
}

// DialRank reaches the daemon of the rank that a command runs in. It is handed in by the
// two commands that need it: net/http, which it speaks by, costs a program that is linked
// with it 0.3 ms at each start, and gqueue is called in loops.
type DialRank func() (Rank, error)

// NewGckpt is the command gckpt, which runs inside a job. Without a dial it only has its
// options.
func NewGckpt(dial DialRank) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gckpt COMMAND",
		Short: "store and read a rank's checkpoint, inside a job",
		Example: `  gckpt put state.bin         keep the file's bytes for the next start of this rank
  echo $step | gckpt put -    the same from standard input
  gckpt get > state.bin       what this rank is to start from`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return Usagef("gckpt needs a command: put or get; run gckpt --help")
			}
			return Usagef("gckpt has no command %q: want put or get; run gckpt --help", args[0])
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	cmd.AddCommand(gckptPut(dial), gckptGet(dial))
	return cmd
}

func gckptPut(dial DialRank) *cobra.Command {
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "put [OPTIONS] FILE|-",
		Short: "store a file (- is standard input) as this rank's checkpoint",
		Example: `  gckpt put state.bin
  echo $step | gckpt put -
  gckpt put --wait=0s state.bin   do not wait for a controller that restarts`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return Usagef("gckpt put takes one file, or - for standard input")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			outliveStop()
			data, err := readCheckpoint(args[0])
			if err != nil {
				return err
			}
			c, err := dial()
			if err != nil {
				return err
			}
			key := rand.Text()
			return insist(cmd.Context(), wait, func(ctx context.Context) error {
				_, err := c.Put(ctx, key, data)
				return err
			})
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", 30*time.Second, "try again for this `TIME` while the controller or the node daemon restarts")
	return cmd
}

// outliveStop has this process ignore what a job is told its end by: that is when a checkpoint is
// brought. KILL bounds it, and the keys of a terminal end it.
func outliveStop() {
	for i := range cmdline.SignalNames {
		switch sig := syscall.Signal(i + 1); sig {
		case syscall.SIGINT:
			if !screenOf(os.Stdin).terminal {
				signal.Ignore(sig)
			}
		case syscall.SIGQUIT, syscall.SIGPIPE, syscall.SIGCHLD, syscall.SIGCONT, syscall.SIGURG: // no word of an end
		// a fault of its own
		case syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGILL, syscall.SIGTRAP, syscall.SIGSYS, syscall.SIGABRT:
		default:
			signal.Ignore(sig)
		}
	}
}

// readCheckpoint reads what fits; the bytes have to be at hand for a second try.
func readCheckpoint(name string) ([]byte, error) {
	in := os.Stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, api.MaxCheckpointBytes+1))
	if err == nil && len(data) > api.MaxCheckpointBytes {
		return nil, api.TooLarge()
	}
	return data, err
}

func gckptGet(dial DialRank) *cobra.Command {
	var wait time.Duration
	rank := -1
	cmd := &cobra.Command{
		Use:   "get [OPTIONS]",
		Short: "write the newest complete checkpoint of a rank to standard output",
		Example: `  gckpt get > state.bin
  gckpt get --rank=0          another rank's
  gckpt get || echo none yet  exit status 3: there is none`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("rank") && rank < 0 {
				return Usagef("invalid value %d for --rank: ranks count from 0", rank)
			}
			c, err := dial()
			if err != nil {
				return err
			}
			var data []byte
			err = insist(cmd.Context(), wait, func(ctx context.Context) (err error) {
				data, err = c.Get(ctx, rank)
				return err
			})
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(data)
			return err
		},
	}
	f := cmd.Flags()
	f.IntVarP(&rank, "rank", "r", -1, "of this `RANK`")
	f.Lookup("rank").DefValue = "own" // -1 is not a rank
	f.DurationVar(&wait, "wait", 30*time.Second, "try again for this `TIME` while the controller or the node daemon restarts")
	return cmd
}

// insist repeats what failed only because somebody was restarting.
func insist(ctx context.Context, wait time.Duration, f func(context.Context) error) error {
	for end := time.Now().Add(wait); ; {
		err := f(ctx)
		if err == nil || api.CodeOf(err) != api.CodeUnavailable || time.Now().After(end) {
			return err
		}
		select {
		case <-time.After(jobRetry):
		case <-ctx.Done():
			return err
		}
	}
}
