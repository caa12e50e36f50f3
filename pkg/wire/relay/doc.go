// Package relay lets the commands on a node or a login host reach the controller: it
// listens on a unix socket of the host, learns from the kernel who calls, and passes each
// call on over TLS with the host's certificate and its word for the user ([auth.Vouch]).
//
// States: none. A call is passed on or refused; nothing of it is kept, cached or tried again. What is
// kept is which controllers there are ([List]).
//
// Invariants:
//   - Whose call it is comes from the socket's peer credentials. What a client writes of
//     that is overwritten, also when it names the header as one to be dropped on the way:
//     a call that arrived without it would count as the host's own.
//   - Root is refused here already. On a compute node users without a job on it are refused
//     by the controller, which knows them; admins are ordinary users to it when they call
//     through a relay.
//   - Bytes are passed on as they come, both ways: events, logs and waits are streams.
//   - It speaks TLS or not at all: on the controller's own socket every call would be
//     root's, whoever made it.
//
// Failure rules: when the controller can't be reached the answer is 503 with code
// unavailable, which commands turn into exit status 4, and submissions try again. A
// connection on which nothing is acknowledged for 20 s is given up, so a host whose
// controller lost power hears of it.
//
// Begin with Run. It must not know what a call means.
package relay
