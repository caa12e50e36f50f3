package lifesign

import (
	"log/slog"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// OutliveHangup has SIGHUP end no daemon, which is what it does to a program that does not say
// otherwise: people send it to have a configuration read again, and terminals when they close.
func OutliveHangup(log *slog.Logger) {
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, unix.SIGHUP)
	go func() {
		for range ch {
			log.Warn("SIGHUP: the configuration is read at the start only; restart to change it, which ends no job")
		}
	}()
}
