// Package notify delivers letters: to a mail server and to the webhooks that the site's configuration lists.
//
// A letter is in the store from the commit of its event on ([api.Letter]); it leaves when its delivery was
// accepted. So each is delivered at least once, and after a crash perhaps twice, with the same id.
//
// A [Queue] (pure) decides what goes when. Of one address (user, target, recipient) one delivery is under way at a
// time, and whatever else waits for the same address by then goes with the next one: a flood becomes a few
// digests. A user has a budget of deliveries. A failure is tried again after 1 s, 2 s, 4 s and so on to 10
// minutes; what could not be delivered for a day is given up, which is on record for a week.
//
// Nothing here lets a user choose where gangd connects to: mail goes to the site's server, for domains that the
// site lists, and webhooks go to URLs of the configuration. A webhook's name must lead to a public address,
// unless its target says private; a redirect is not followed; of an answer 64 KiB are read.
//
// Failure rules: a delivery that fails or hangs (30 s) never holds others back for more than its place among
// four. Secrets stand in the configuration's files alone: letters name a target, not its address.
//
// Begin with [Site], [Queue] and [Sender].
//
// It must not know the engine or the store: letters come through its Outbox.
package notify
