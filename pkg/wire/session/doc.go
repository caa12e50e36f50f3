// Package session is the conversation of one node with its controller: one WebSocket,
// opened by the node at [api.SessionPath], one JSON [api.Frame] a message.
//
// Over a network a second, silent connection stands beside it, whose end tells whether the
// controller's process ended (see the type witness).
//
// The controller's half is a [Hub], which serves every node; the node's half is a [Client],
// which keeps one session up. Neither decides anything: a [Handler] (the engine) and an
// [Agent] (the node daemon) do.
//
// States of a session: opened, greeted (Hello answered by a Welcome), ended. It is ended by
// either side, by silence, or by a newer session of the same node.
//
// Invariants:
//   - Level-triggered. Both sides keep what they sent and send differences, pulled at the
//     moment of writing: any number of wake-ups become one frame. Nothing survives a
//     session; after a reconnect both sides say everything again.
//   - The first Desired of a session is Full. A body is sent once per member and session, a
//     spec once per session and as long as a member that uses it is desired (see [sent]).
//   - One reader a session, and one writer: at the controller only while there is something to
//     write. The reader never waits for the writer, so that two busy sides can't lock each other up.
//   - A stream never has more than its window on the way: a slow reader of a log stops that
//     log at its node, and neither the session nor memory.
//
// Failure rules: silence in either direction for [SilentBeats] heartbeats ends the session, and what waits unread in the
// socket is no silence (see the type silence); so does a frame that is too large or makes no sense, with the reason
// sent first. A session that breaks ends no job and drains nothing.
//
// Begin with Hub and Client. It must not know what a job is.
package session
