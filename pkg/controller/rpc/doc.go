// Package rpc is the controller's HTTP interface: JSON calls, the event stream
// (server-sent events), log streams, node sessions, health and metrics. The routes and
// bodies are described in docs/openapi.yaml; a test holds the two together.
//
// Invariants:
//   - Who calls is known from the connection (peer credentials or certificate), never
//     from the request. Every route names its operation, and the one table in package
//     auth decides; a route without an operation does not exist.
//   - Nothing in here changes state: it asks the engine.
//
// Failure rules: a refusal is an api.Error as JSON with the status of its code. A panic
// in a handler ends that call, not the controller.
//
// Begin with Server.Handler; each group of calls has a file. It must not know SQL, the scheduler or
// how the engine decides.
package rpc
