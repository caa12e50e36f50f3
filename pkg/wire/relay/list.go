package relay

import (
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"

	"gangd/pkg/api"
	"gangd/pkg/wire/auth"
)

// List is which controllers this host calls: those that its configuration names, and of several those on the site's list, as
// a leader told it last. That is kept on disk: when the host starts again, those that are configured may be gone.
type List struct {
	path       string // empty: it is not kept
	configured []string
	log        *slog.Logger

	mu   sync.Mutex
	told api.Controllers
}

// OpenList reads what was kept at a path.
func OpenList(path string, configured []string, log *slog.Logger) *List {
	l := &List{path: path, configured: configured, log: log}
	if path == "" {
		return l
	}
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &l.told)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.told = api.Controllers{}
		log.Warn("list of controllers not read: those in the configuration are called until one tells it again", "path", path, "err", err)
	}
	return l
}

// Addresses are host:port of all of them, those that are configured first.
func (l *List) Addresses() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := slices.Clone(l.configured)
	for i := range l.told.List {
		for _, a := range l.told.List[i].Addresses {
			if !strings.HasPrefix(a, "unix:") && !slices.Contains(out, a) {
				out = append(out, a)
			}
		}
	}
	return out
}

func (l *List) version() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.told.Version
}

// take takes in the site's list, where it is a newer one.
func (l *List) take(r *api.ControllersReply) {
	told := api.Controllers{Version: r.Version}
	for i := range r.Controllers {
		if c := &r.Controllers[i]; c.State != api.ControllerRemoved {
			told.List = append(told.List, api.Controller{Name: c.Name, Addresses: c.Addresses})
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if told.Version <= l.told.Version {
		return
	}
	l.told = told
	if l.path == "" {
		return
	}
	text, err := json.Marshal(told)
	if err == nil {
		err = auth.WriteFile(l.path, append(text, '\n'))
	}
	if err != nil {
		l.log.Warn("list of controllers not kept", "path", l.path, "err", err)
	}
}
