package auth

import (
	"context"
	"log/slog"
	"time"
)

// renewCheck is how often a node looks at its certificate; the last third of its life is
// ten days, so a controller may be away for most of them.
const renewCheck = time.Hour

// KeepRenewed renews the certificate in dir when a third of its life is left, until ctx
// ends. It returns only then; a renewal that fails is logged and tried at the next look.
func KeepRenewed(ctx context.Context, dir string, addresses func() []string, log *slog.Logger) {
	tick := time.NewTicker(renewCheck)
	for {
		renewOnce(ctx, dir, addresses, log)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func renewOnce(ctx context.Context, dir string, addresses func() []string, log *slog.Logger) {
	_, expires, err := nodeName(dir)
	if err == nil && time.Until(expires) >= nodeLife/3 {
		return
	}
	if err == nil {
		for _, a := range addresses() { // one of them leads
			if err = renew(ctx, dir, a); err == nil {
				break
			}
		}
	}
	if err != nil {
		log.Warn("certificate not renewed", "expires", expires, "err", err)
		return
	}
	log.Info("certificate renewed")
}
