package nvmlgpu

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"gangd/pkg/api"
	"gangd/pkg/node/gpu"
)

// The questions, one a line on the child's standard input.
const (
	askInventory = "inventory"
	askSample    = "sample"
)

// answer is one line on the child's standard output.
type answer struct {
	None    string         `json:"none,omitempty"` // why there are no cards; the child ends
	Cards   []api.CardInfo `json:"cards,omitempty"`
	Samples []gpu.Sample   `json:"samples,omitempty"`
	Error   string         `json:"error,omitempty"`
}

// source is what a child reads; close ends it.
type source interface {
	inventory() ([]api.CardInfo, error)
	sample() ([]gpu.Sample, error)
	close()
}

// errNone says why there are no cards; nothing may be asked of NVML after it.
type errNone struct{ why string }

func (e errNone) Error() string { return e.why }

// ProbeMain is the probe child: it answers the questions on standard input on w and gives
// the exit status. Its end is the end of standard input.
func ProbeMain(ctx context.Context, w io.Writer) int {
	return serve(ctx, os.Stdin, w, openNVML)
}

func serve(ctx context.Context, r io.Reader, w io.Writer, open func() (source, error)) int {
	enc := json.NewEncoder(w)
	src, err := open()
	if err != nil {
		var none errNone
		a := answer{Error: err.Error()}
		if errors.As(err, &none) {
			a = answer{None: none.why}
		}
		_ = enc.Encode(a)
		return 0
	}
	defer src.close()
	lines := bufio.NewScanner(r)
	for ctx.Err() == nil && lines.Scan() {
		if err := enc.Encode(reply(src, lines.Text())); err != nil {
			return 1 // nobody reads any more
		}
	}
	return 0
}

func reply(src source, question string) (a answer) {
	var err error
	switch question {
	case askInventory:
		a.Cards, err = src.inventory()
	case askSample:
		a.Samples, err = src.sample()
	default:
		err = fmt.Errorf("unknown question %q", question)
	}
	if err != nil {
		a = answer{Error: err.Error()}
	}
	return a
}
