// Package lifesign is what a daemon tells the service manager that started it (systemd, or
// gangd dev), by the datagrams of sd_notify(3): that it is ready, that it is stopping, that a
// long start makes progress, and that its loops go round.
//
// A process that lives and does nothing is worse than a dead one: a dead controller's host
// refuses connections, which nodes take as contact, a frozen one lets every lease of the site
// run out. So a sign of life means that the loops on which the work depends went round, and no
// timer of its own sends it: [Loop.Round] does, called by the loops.
//
// Invariants:
//   - A beat is sent when every loop has gone round since the last one, or waits for somebody
//     else for a time that it has named and that is not over.
//   - Nothing here blocks: a service manager that does not read loses signs, and no daemon
//     waits for it.
//   - Without NOTIFY_SOCKET nobody listens and nothing is sent; without WATCHDOG_USEC, or with
//     another's WATCHDOG_PID, no beats are.
//
// Begin with Signs and Loop. It must not know what the loops do.
package lifesign
