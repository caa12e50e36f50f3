package lifesign

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// Hangups has SIGHUP end no daemon, which is what it does to a program that does not say otherwise: people send it to have a
// configuration read again, and terminals when they close. Those that come while one is being seen to are one more.
func Hangups() <-chan os.Signal {
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, unix.SIGHUP)
	return ch
}
