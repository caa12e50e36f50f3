// Package dev runs a whole cluster on one machine: gangd and N gnoded as separate
// processes, single-user, without root, in one directory.
//
//	DIR/etc/NAME.toml   configuration of each daemon: gangd, n1, n2 ...
//	DIR/run/NAME.pid    "pid start boot": which process it is
//	DIR/run/NAME.notify where it gives signs of life, while a gangd dev stays with it
//	DIR/run/gangd.sock  where every command finds it with GANG_DIR=DIR
//	DIR/log/NAME.log    what each daemon said
//	DIR/run/bridge      number of the network of isolated nodes, with DIR/run/NODE.net and NODE.uts
//	DIR/sim/NODE.json   steers the node's simulated cards
//	DIR/state/NAME      what each daemon keeps
//
// States of a directory: empty, running (a recorded daemon lives), stopped. A stopped one
// is started again with what it kept.
//
// Invariants:
//   - A daemon is a pid with its start time and boot id; a pid alone is never signalled.
//     Signals go through a pidfd that was opened before the check, so they can't meet a
//     later process.
//   - One gangd dev at a time changes a directory (a lock in it).
//   - A daemon is watched by the gangd dev that started it in the foreground, and by nobody
//     when that was --detach. One that died or is silent is started again, by one gangd dev at a time.
//   - After Stop nothing of the cluster runs: no daemon, no shim, no rank.
//
// Failure rules: a start that does not bring every node up stops what it started and
// quotes the log of the daemon that failed. Stop is idempotent and ends what it can before
// it reports what it could not.
//
// Begin with Start and Stop. It must not know the store, the scheduler or the life of a gang: it
// starts the daemons as a person would, and calls them as a client.
package dev
