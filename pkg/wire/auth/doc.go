// Package auth says who is calling and what they may do.
//
// States: a [CA] and a [Tokens] store live in the controller's state directory; a node's
// certificate and key live in its own. A token goes from new to used up or expired; a
// node's certificate from valid to renewed, expired or revoked.
//
// Invariants:
//   - Identity comes from the kernel (peer credentials of a unix socket) or from a
//     certificate of this cluster's CA, never from a request's body. The one claim that
//     is read from a request, a relay's word for its user, is never believed for root
//     or without [Guard.Vouches]; a login host's, which its certificate marks as one, is
//     believed for all others. It makes nobody an admin.
//   - [Allow] is one table of operation and role, default deny; a test walks all of it.
//   - TLS 1.3 only, both sides verified. The controller's certificate can't serve as a
//     node's or the other way round (extended key usage).
//   - A certificate speaks for the one node or login host it names, and its role is in it:
//     a login host can't open a node's session. A token that names no node can't
//     give out a name that has joined before: a machine with a spare token must not be
//     able to become its neighbour.
//   - Private keys never leave the machine they were made on; tokens are kept hashed.
//
// Failure rules: fail closed. What can't be parsed, looked up or read is nobody
// ([KindNone]) and is refused. Files are written by temporary name, fsync and rename; a
// token is recorded as used before its certificate is signed, so a crash in between costs
// the token, never a second use of it.
//
// Begin with table.go (who may do what) and Guard (who calls). It must not know what an
// operation does, the engine or the store.
package auth
