package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
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
	document
	now func() time.Time

	mu    sync.Mutex
	state tokenFile
}

type tokenFile struct {
	Tokens []tokenRow `json:"tokens"`
	Joined []string   `json:"joined"` // sorted
}

type tokenRow struct {
	Hash  string `json:"hash"` // SHA-256 in hex; a token has 256 random bits, so no salt
	Node  string `json:"node,omitempty"`
	Login bool   `json:"login,omitempty"` // makes a login host
	// Controller: it makes a controller, and neither a node nor a login host.
	Controller bool      `json:"controller,omitempty"`
	Uses       int       `json:"uses"` // left
	Expires    time.Time `json:"expires"`
}

// openTokens reads those of a vault; none yet is an empty one.
func openTokens(v Vault) (*Tokens, error) {
	t := &Tokens{document: document{v, tokensName}, now: time.Now}
	return t, t.reload()
}

// reload is called by the one who has t for himself.
func (t *Tokens) reload() error {
	var state tokenFile
	if err := t.read(&state); err != nil {
		return fmt.Errorf("join tokens: %w", err)
	}
	t.state = state
	return nil
}

// take replaces them by the newest ones.
func (t *Tokens) take(all map[string][]byte) error {
	var state tokenFile
	if err := t.decode(all, &state); err != nil {
		return fmt.Errorf("join tokens: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.state = state
	return nil
}

// New makes a token as asked for and returns it; only its hash is kept.
func (t *Tokens) New(ask api.TokenRequest) (string, error) {
	ttl := time.Duration(min(ask.TTLSeconds, int64(maxTTL/time.Second)+1)) * time.Second
	switch {
	case ask.Node != "" && !validName(ask.Node):
		return "", badName(ask.Node)
	case ask.Controller && (ask.Node != "" || ask.Login || ask.Uses > 1):
		return "", api.Errorf(api.CodeInvalid, "a controller's token is for one controller of any name, and for neither a node nor a login host")
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
	row := tokenRow{Hash: hash(token), Node: ask.Node, Login: ask.Login, Controller: ask.Controller, Uses: max(ask.Uses, 1),
		Expires: t.now().Add(ttl).UTC()}
	return token, t.change(func(f *tokenFile) error {
		f.Tokens = append(f.Tokens, row)
		return nil
	})
}

// List are those that can still be used, the one that expires first first.
func (t *Tokens) List() []api.Token {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := []api.Token{}
	for _, r := range t.state.Tokens {
		if r.Uses > 0 && t.now().Before(r.Expires) {
			out = append(out, api.Token{ID: r.id(), Node: r.Node, Login: r.Login, Controller: r.Controller, Uses: r.Uses, Expires: r.Expires})
		}
	}
	slices.SortStableFunc(out, func(a, b api.Token) int { return a.Expires.Compare(b.Expires) })
	return out
}

// id names a token to people. It is no part of the token, of which it is the hash.
func (r *tokenRow) id() string { return r.Hash[:min(len(r.Hash), 8)] }

// Withdraw takes a token that nobody needs any more: on disk, before it returns nil.
func (t *Tokens) Withdraw(id string) error {
	return t.change(func(f *tokenFile) error {
		left := slices.DeleteFunc(slices.Clone(f.Tokens), func(r tokenRow) bool { return r.id() == id })
		if len(left) == len(f.Tokens) {
			return &api.Error{Code: api.CodeNotFound, Message: fmt.Sprintf("no token %q", id), Hint: "gangd token list has those that can be used"}
		}
		f.Tokens = left
		return nil
	})
}

// use spends one use of the token for the node, on disk, before it returns nil; login is
// whether the node becomes a login host.
func (t *Tokens) use(token, node string) (login bool, err error) {
	h := hash(token)
	err = t.change(func(f *tokenFile) error {
		i := slices.IndexFunc(f.Tokens, func(r tokenRow) bool { return r.Hash == h })
		if i < 0 || f.Tokens[i].Controller || f.Tokens[i].Node != "" && f.Tokens[i].Node != node {
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

// useForController spends one that makes a controller, after may has agreed.
func (t *Tokens) useForController(token string, may func() error) error {
	h := hash(token)
	return t.change(func(f *tokenFile) error {
		i := slices.IndexFunc(f.Tokens, func(r tokenRow) bool { return r.Hash == h && r.Controller })
		if i < 0 {
			return &api.Error{Code: errToken.Code, Message: errToken.Message, Hint: "ask an admin for a new line: gangd controller new"}
		}
		f.Tokens[i].Uses--
		return may()
	})
}

// change applies do to a copy without spent tokens and keeps it once it is on disk. do may be
// called again, where another controller has changed them meanwhile.
func (t *Tokens) change(do func(*tokenFile) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var next tokenFile
	err := t.write(func() (any, error) {
		next = tokenFile{Joined: slices.Clone(t.state.Joined)}
		for _, r := range t.state.Tokens {
			if r.Uses > 0 && t.now().Before(r.Expires) {
				next.Tokens = append(next.Tokens, r)
			}
		}
		return next, do(&next)
	}, t.reload)
	var refused *api.Error
	switch {
	case errors.As(err, &refused):
		return err
	case err != nil:
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
