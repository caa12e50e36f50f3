// Package client calls the controller: HTTP/1.1 and JSON over a unix socket, as
// docs/openapi.yaml describes it. Every command is built on it.
//
// It finds the cluster by itself: $GANG_DIR/run/gangd.sock when GANG_DIR is set, else what a
// node told its job (GANG_CONTROLLER), else /run/gangd/gangd.sock. On a node or login host
// that socket belongs to gnoded's relay, which passes the call on.
//
// Failure rules: an answer of the controller other than success is an [*api.Error]; a
// controller that can't be reached is an [*UnreachableError], which commands turn into
// exit status 4. So is one that is silent for a time-out ([WithTimeout], GANG_TIMEOUT, 10 s): of what takes
// its time (waits, streams, long lists) not the call's silence counts but the controller's, which
// is asked by a call beside it. Retried is a submission, whose key makes that safe, and what the
// controller refused for the moment.
//
// Begin with Client. It must not know what a command prints.
package client
