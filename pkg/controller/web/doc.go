// Package web serves the page: static files that gangd carries, a log-in, and the documented calls
// to whoever is logged in.
//
// States: a link is made by `gctl web` for its caller, and is used once or expires. A session is a
// signed cookie: nothing of it is kept, so it goes on over a restart and, where controllers share
// the key, over a fail-over.
//
// Invariants:
//   - Who calls is known from a session, which came from a link that was made by the kernel's word
//     or a login host's, or from the certificate of the site's proxy together with the user it
//     names. What he may do is package auth's table; nothing is decided here a second time.
//   - Only the calls that the page makes are passed on. None of them opens a node's session.
//   - A call that changes something needs the token that belongs to the session, in a header that
//     no other site's page can set.
//   - The page loads nothing from another host, and holds no code or style inline.
//
// Failure rules: what is not known, expired or wrongly signed is nobody. A link that is used a second
// time is refused, whoever did it first.
//
// Begin with Server. It must not know the engine: it passes calls on to the documented interface.
package web
