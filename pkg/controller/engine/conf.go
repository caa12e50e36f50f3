package engine

import (
	"context"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/notify"
	"gangd/pkg/core/gang"
	"gangd/pkg/core/sched"
	"gangd/pkg/core/sched/fit"
	"gangd/pkg/core/sched/order"
)

// Conf is what of the site's configuration the engine goes by. It is taken as a whole, at the start and by a reload: a round, and
// whoever reads, has all of one or all of the next. It is not changed once it was handed over.
type Conf struct {
	Settings api.Settings
	Policy   order.Policy
	Operator string // for [api.Site]
	// Fence makes sure that nothing runs on a lost node; nil: the site has no such means.
	Fence      func(ctx context.Context, node string) error
	FenceRetry time.Duration // pause after a failure
	// TellIdle tells the site of idle gangs; nil: it does not want to know.
	TellIdle func(ctx context.Context, w IdleEvent) error
	// Rule asks the site's rule for submissions, as package rule says, on behalf of a user. nil: the site has none.
	Rule func(ctx context.Context, uid uint32, question []byte) (answer []byte, err error)
	// Notify is where people may be told of their jobs; nil: nowhere.
	Notify *notify.Site
	// Archive takes ended jobs before they are forgotten, durably; nil: there is no archive.
	Archive func(ctx context.Context, past []Past) error
}

// inForce is a configuration with what was made of it at run time: what readers see. Immutable.
type inForce struct {
	*Conf
	policy  *order.Policy // with the partitions that hold
	changes []api.PartitionChange
	groups  map[uint32][]string
}

// conf is what readers go by. Who looks at two things of it looks at both of one.
func (e *Engine) conf() *inForce { return e.published.Load() }

// policy is the site's, with the partitions that hold; not to be written to.
func (e *Engine) policy() *order.Policy { return e.conf().policy }

// ownView is the configuration of this round with what the world has made of it.
func (e *Engine) ownView() *inForce {
	policy := e.own.Policy
	policy.Partitions = e.world.Partitions()
	return &inForce{Conf: e.own, policy: &policy, changes: e.world.PartitionChanges(), groups: e.world.Groups()}
}

// roundPolicy is what this round plans by: after a reconfiguration that is not published yet, the new one.
func (e *Engine) roundPolicy() *order.Policy {
	if c := e.conf(); c.Conf == e.own {
		return c.policy
	}
	return e.ownView().policy
}

// reconfiguration is a request for another configuration.
type reconfiguration struct {
	conf *Conf
	took func() // what else changes with it, when it is on record
}

// Reconfigure goes by another configuration from its commit on, and calls took in the same moment. text says what is otherwise.
func (e *Engine) Reconfigure(ctx context.Context, conf *Conf, text string, took func()) error {
	own := *conf
	own.Policy.Pools = own.Settings.Pools()
	ev := gang.Reconfigure{Settings: own.Settings, Partitions: own.Policy.Partitions, Paths: fit.SwitchPath(own.Policy.Switches), Text: text}
	_, err := e.answered(ctx, request{ev: ev, reconf: &reconfiguration{&own, took}})()
	return err
}

// reconfigured has this round go by another configuration. The queue and what the planner remembers are of the old one: all that waits is
// given to a new queue by the step.
func (e *Engine) reconfigured(r *reconfiguration) {
	e.own = r.conf
	e.took = append(e.took, r.took)
	e.plan.reset(e.roundPolicy())
}

// reset forgets what was planned by another policy, and not what was learnt.
func (p *planning) reset(policy *order.Policy) {
	p.queue = order.NewQueue(policy, p.ledger)
	p.planner = sched.Planner{}
	p.again = true
}

// publishConf shows readers what is in force, and who goes by it beside the engine.
func (e *Engine) publishConf() {
	e.published.Store(e.ownView())
	if e.opt.Sender != nil {
		e.opt.Sender.Take(e.own.Notify)
	}
	for _, took := range e.took {
		took()
	}
	e.took = nil
}
