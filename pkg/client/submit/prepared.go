package submit

import (
	"context"
	"io"

	"gangd/pkg/client"
	"gangd/pkg/core/script"

	"gangd/pkg/api"
)

// Prepared is a submission whose command line and script were read by another program than
// gsubmit: by one that speaks as sbatch does. Directives and environment are read here, and
// all checks are gsubmit's.
type Prepared struct {
	Program string // in warnings
	Flags   []script.Setting
	Name    string // of the script
	Text    []byte
	Args    []string // behind the script's name
	// Adjust has the last word on what is asked, before anything is checked; it may be nil.
	Adjust   func(*script.Request)
	Out, Err io.Writer

	s submission
}

// Ask reads and checks everything and says what would be submitted.
func (p *Prepared) Ask() (*script.Request, error) {
	p.s = submission{out: p.Out, err: p.Err, program: p.Program, silent: true, client: client.New()}
	if err := p.s.ask(p.Flags, p.Name, p.Text); err != nil {
		return nil, err
	}
	if p.Adjust != nil {
		p.Adjust(p.s.req)
	}
	p.s.spec.Args = p.Args
	return p.s.req, p.s.fill(p.Name, p.Text)
}

// Test asks the controller what [Prepared.Submit] would come to: nothing is queued.
func (p *Prepared) Test(ctx context.Context) (*api.SubmitReply, error) {
	key, err := client.NewKey()
	if err != nil {
		return nil, err
	}
	return p.s.client.Submit(p.s.timed(ctx), &api.SubmitRequest{Key: key, Spec: *p.s.spec, Array: p.s.req.Array, TestOnly: true})
}

// Tell says what there is to warn of and has not been said: behind all else, where programs do not look for answers.
func (p *Prepared) Tell() { p.s.tell() }

// Submit queues what [Prepared.Ask] found, says so, and with --wait stays until the end; the
// error then carries the job's status.
func (p *Prepared) Submit(ctx context.Context) error { return p.s.submit(ctx) }
