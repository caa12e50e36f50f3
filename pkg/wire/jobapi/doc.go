// Package jobapi is what a running rank may say and ask, seen from the rank: systemd's
// notification protocol on NOTIFY_SOCKET, and a little HTTP on GANG_SOCKET for
// checkpoints, barriers and "who am I".
//
//	rank --datagram--> gshim --note, once a second--> gnoded --session--> controller's view
//	rank --HTTP------> gshim --the open connection--> gnoded --call-----> controller, store
//
// gshim owns both sockets, because it outlives gnoded, and knows a rank by the socket it
// used: each rank has its own pair, which only the job's user can open. It carries no HTTP:
// an accepted connection is handed to gnoded as a descriptor ([HandOver]), and when no gnoded
// takes it the rank is told so in one fixed answer ([Unavailable]).
//
// This package is the common part without HTTP; package jobhttp has the server and the client.
//
// Invariants:
//   - The body of a request never says whose it is: the socket does.
//   - What cannot be parsed is ignored line by line, as the protocol demands.
//
// Failure rules: a request that can't be served now is answered 503 with a text, never left
// hanging; the program may try again.
//
// Begin with Parse and HandOver. It must not know the controller, the store or HTTP.
package jobapi
