// Package attack tries to break a site: a gangd as a user of its own, two gnodeds as root that
// joined over TLS, a node's certificate that was stolen (n3, whose gnoded never runs), and two
// ordinary users, one who works and one who means harm.
//
// A [try] says under which heading it belongs, what is tried, and what holds: the try itself
// reports how the site answered, and after each of them the site is looked at as a whole: its
// daemons live, it is not on hold, its own nodes are in service, and the other user's jobs are as
// they were. Each prints a line, HELD or BROKE.
//
// It needs root. CI runs the tries that cost little, `make attack` (GANG_E2E_CHAOS=1) all.
package attack
