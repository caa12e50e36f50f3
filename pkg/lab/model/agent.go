package model

import (
	"gangd/pkg/api"
	"gangd/pkg/wire/session"
)

// agent is the node's daemon as far as a session without orders needs one.
type agent struct {
	session.Agent
	kept *session.Kept
}

func (agent) Hello() *api.Hello         { return &api.Hello{Node: "n1"} }
func (agent) Welcome(*api.Welcome)      {}
func (agent) Settings(*api.Settings)    {}
func (agent) Report() *api.Actual       { return nil }
func (agent) Samples() []api.CardSample { return nil }
func (agent) Notes() []api.MemberNote   { return nil }
func (agent) Load() *api.NodeLoad       { return nil }
func (agent) Down(error)                {}

func (a agent) Keep(k session.Kept) error {
	*a.kept = k
	return nil
}
