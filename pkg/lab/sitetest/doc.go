// Package sitetest is a site for tests of commands: the real engine on the real store in memory, behind the
// real calls on a unix socket, with a clock that the test sets and nodes that it plays. So what a command shows
// is what a controller can say.
//
// A test tells a site as a story: nodes join, jobs are submitted, start and end, each at its time ([At],
// [Site.Play]). [Small] is a ready one that most tests share. A node answers what it was told as a gnoded does, at the
// engine's side of a session: [Site.Start] and its siblings say how far a gang has come.
//
// Between the commands and the calls stands what a test may break: calls are noted ([Site.Asked]), refused
// ([Site.Refuse]) or not answered ([Site.Freeze]), and the controller may die and come back ([Site.Die]).
//
// Begin with Small. It must not know a command.
package sitetest
