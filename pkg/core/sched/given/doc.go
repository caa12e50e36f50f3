// Package given is what a plan is made of: the [View] of a moment, the rules of the site, what reservations shut ([Windows]), and
// who is let to the front. All who have a part in a plan are told it as [Facts].
//
// States: a view is a snapshot and is not changed. Of the facts a plan changes who is let to the front and when the next plan is due.
//
// Invariants: whatever follows from the view, the rules and the time alone is asked here, and not worked out twice.
//
// Failure rules: nothing here fails.
//
// Begin with view.go and given.go. It must not know what a plan decided.
package given
