package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"gangd/pkg/api"
)

// Bounds and defaults of tokens. A token is a key to the cluster: an hour and one use
// unless the admin says otherwise, a week and a thousand nodes at most.
const (
	defaultTTL = time.Hour
	maxTTL     = 7 * 24 * time.Hour
	maxUses    = 1000
)

// errToken is one answer for unknown, used up, expired and foreign tokens: which it was
// helps only who guesses.
var errToken = &api.Error{Code: api.CodePermission, Message: "this token is not valid (any more)",
	Hint: "ask an admin for a new line: gangd token new"}

// Tokens are the join tokens of a cluster, kept hashed in one file, and the names that
// have joined.
type Tokens struct {
	path string
	now  func() time.Time

	mu    sync.Mutex
	state tokenFile
}

type tokenFile struct {
	Tokens []tokenRow `json:"tokens"`
	Joined []string   `json:"joined"` // sorted
}

type tokenRow struct {
	Hash    string    `json:"hash"` // SHA-256 in hex; a token has 256 random bits, so no salt
	Node    string    `json:"node,omitempty"`
	Login   bool      `json:"login,omitempty"` // makes a login host
	Uses    int       `json:"uses"`            // left
	Expires time.Time `json:"expires"`
}

// OpenTokens reads the store in dir; none yet is an empty one.
func OpenTokens(dir string) (*Tokens, error) {
	t := &Tokens{path: filepath.Join(dir, "tokens.json"), now: time.Now}
	if err := readJSON(t.path, &t.state); err != nil {
		return nil, fmt.Errorf("join tokens %s: %w", t.path, err)
	}
	return t, nil
}

// New makes a token as asked for and returns it; only its hash is kept.
func (t *Tokens) New(ask api.TokenRequest) (string, error) {
	ttl := time.Duration(min(ask.TTLSeconds, int64(maxTTL/time.Second)+1)) * time.Second
	switch {
	case ask.Node != "" && !ValidName(ask.Node):
		return "", badName(ask.Node)
	case ttl < 0 || ttl > maxTTL:
		return "", api.Errorf(api.CodeInvalid, "a token lives from 1 second to 7 days, not %d seconds", ask.TTLSeconds)
	case ask.Uses < 0 || ask.Uses > maxUses:
		return "", api.Errorf(api.CodeInvalid, "a token has 1 to %d uses, not %d", maxUses, ask.Uses)
	}
	if ttl == 0 {
		ttl = defaultTTL
	}
	secret := make([]byte, 32)
	rand.Read(secret) // never fails, by its documentation
	token := base64.RawURLEncoding.EncodeToString(secret)
	row := tokenRow{Hash: hash(token), Node: ask.Node, Login: ask.Login, Uses: max(ask.Uses, 1), Expires: t.now().Add(ttl).UTC()}
	return token, t.change(func(f *tokenFile) error {
		f.Tokens = append(f.Tokens, row)
		return nil
	})
}

// use spends one use of the token for the node, on disk, before it returns nil; login is
// whether the node becomes a login host.
func (t *Tokens) use(token, node string) (login bool, err error) {
	h := hash(token)
	err = t.change(func(f *tokenFile) error {
		i := slices.IndexFunc(f.Tokens, func(r tokenRow) bool { return r.Hash == h })
		if i < 0 || f.Tokens[i].Node != "" && f.Tokens[i].Node != node {
			return errToken
		}
		at, again := slices.BinarySearch(f.Joined, node)
		if again && f.Tokens[i].Node == "" {
			return &api.Error{Code: api.CodeConflict, Message: "a node " + node + " has joined before",
				Hint: "to let it join again: gangd token new --node=" + node}
		}
		if !again {
			f.Joined = slices.Insert(f.Joined, at, node)
		}
		f.Tokens[i].Uses--
		login = f.Tokens[i].Login
		return nil
	})
	return login, err
}

// change applies do to a copy without spent tokens and keeps it once it is on disk.
func (t *Tokens) change(do func(*tokenFile) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := tokenFile{Joined: slices.Clone(t.state.Joined)}
	for _, r := range t.state.Tokens {
		if r.Uses > 0 && t.now().Before(r.Expires) {
			next.Tokens = append(next.Tokens, r)
		}
	}
	if err := do(&next); err != nil {
		return err
	}
	if err := writeJSON(t.path, next); err != nil {
		return fmt.Errorf("join tokens: %w", err)
	}
	t.state = next
	return nil
}

func hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

func badName(name string) *api.Error {
	return api.Errorf(api.CodeInvalid, "invalid node name %q: want 1 to 63 of a-z 0-9 . - that begin and end with a letter or digit", name)
}
