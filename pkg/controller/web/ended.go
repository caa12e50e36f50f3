package web

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// Ended are the sessions that somebody has logged out of: the cookie of one says for hours still that it goes on. They
// are kept in a file until they would have been over anyway, so that a restart brings none back.
type Ended struct {
	mu   sync.Mutex
	path string
	of   map[[sha256.Size]byte]int64 // by the hash of the session's name, until when it would go on
}

// OpenEnded reads the file of a directory's ended sessions. What is over is left out of it.
func OpenEnded(path string, now time.Time) (*Ended, error) {
	e := &Ended{path: path, of: map[[sha256.Size]byte]int64{}}
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	lines := bufio.NewScanner(strings.NewReader(string(text)))
	for lines.Scan() {
		var hash []byte
		var until int64
		// A line that a crash cut short was never answered.
		if n, _ := fmt.Sscanf(lines.Text(), "%x %d", &hash, &until); n == 2 && len(hash) == sha256.Size && until > now.Unix() {
			e.of[[sha256.Size]byte(hash)] = until
		}
	}
	if len(e.of) == 0 {
		if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
			return nil, err
		}
		return e, nil
	}
	var b strings.Builder
	for hash, until := range e.of {
		b.WriteString(line(hash, until))
	}
	if err := os.WriteFile(path+".new", []byte(b.String()), 0o600); err != nil {
		return nil, err
	}
	return e, os.Rename(path+".new", path)
}

func line(hash [sha256.Size]byte, until int64) string {
	return fmt.Sprintf("%s %d\n", hex.EncodeToString(hash[:]), until)
}

// end ends a session; it is on the disk when this returns.
func (e *Ended) end(st *seat, now time.Time) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for hash, until := range e.of {
		if until <= now.Unix() {
			delete(e.of, hash)
		}
	}
	hash := sha256.Sum256([]byte(st.Secret))
	if _, there := e.of[hash]; there {
		return nil
	}
	e.of[hash] = st.Until
	f, err := os.OpenFile(e.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteString(line(hash, st.Until)); err != nil {
		return err
	}
	return f.Sync()
}

func (e *Ended) has(st *seat) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, there := e.of[sha256.Sum256([]byte(st.Secret))]
	return there
}
