// Package fence runs a site's fence hook: the program that makes sure that nothing runs on
// a node which is not heard of any more (it cuts its power, its network, its virtual
// machine). Its exit status 0 is the site's word that the node's ranks are gone; gangd then
// starts their gangs elsewhere.
//
// The hook gets the node's name as its one argument and as GANG_NODE, and otherwise what
// package hook gives every program of the site. When its time is over, and with any other
// status, nothing is believed.
package fence

import (
	"context"
	"time"

	"gangd/pkg/hook"
)

// Hook is a program of the site.
type Hook struct {
	Path    string
	Timeout time.Duration
}

// Run fences one node; nil is the site's word that nothing runs there.
func (h Hook) Run(ctx context.Context, node string) error {
	return hook.Program(h).Run(ctx, []string{"GANG_NODE=" + node}, node)
}
