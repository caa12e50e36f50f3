package auth

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"gangd/pkg/api"
)

// The paths of the join protocol, over TLS.
const (
	JoinPath           = "/v1/join"
	RenewPath          = "/v1/renew"
	ControllerJoinPath = "/v1/controllers/join"
)

// maxBody bounds the requests here; a certificate request has under a kilobyte.
const maxBody = 64 << 10

// joinRequest is the body of [JoinPath], with CSR alone of [RenewPath], and without one of [ControllerJoinPath].
type joinRequest struct {
	Token string `json:"token,omitempty"`
	Name  string `json:"name,omitempty"`
	CSR   []byte `json:"csr,omitempty"` // DER
}

// joinReply answers them.
type joinReply struct {
	Certificate []byte `json:"certificate,omitempty"` // DER
	Key         []byte `json:"key,omitempty"`         // a controller's: opens what controllers share
}

// Issuer hands out certificates; its handlers go into the controller's mux.
type Issuer struct {
	CA      *CA
	Tokens  *Tokens
	Revoked *Revocations
	Address string // host:port that nodes dial; empty: the controller takes no nodes over TLS
	Log     *slog.Logger
	// Admit says whether a controller of this name may join, and sees to it that it may. Nil: none joins.
	Admit func(ctx context.Context, name string) error
	Key   []byte // opens what controllers share

	vault Vault
}

// OpenIssuer opens or makes all that a cluster keeps about nodes' certificates.
func OpenIssuer(v Vault, address string, log *slog.Logger) (*Issuer, error) {
	ca, err := OpenCA(v)
	if err != nil {
		return nil, err
	}
	tokens, err := openTokens(v)
	if err != nil {
		return nil, err
	}
	revoked, err := openRevocations(v)
	if err != nil {
		return nil, err
	}
	return &Issuer{CA: ca, Tokens: tokens, Revoked: revoked, Address: address, Log: log, vault: v}, nil
}

// Reload takes in what another controller has changed.
func (i *Issuer) Reload() error {
	all, err := i.vault.Get()
	if err != nil {
		return err
	}
	return errors.Join(i.Tokens.take(all), i.Revoked.take(all))
}

// ControllerHandler serves [ControllerJoinPath]: a token in, the key of what controllers share out.
func (i *Issuer) ControllerHandler() http.Handler {
	return handle(func(r *http.Request) (any, error) {
		var ask joinRequest
		if err := decode(r, &ask); err != nil {
			return nil, err
		}
		switch {
		case r.TLS == nil:
			return nil, api.Errorf(api.CodePermission, "joining needs TLS")
		case !validName(ask.Name):
			return nil, badName(ask.Name)
		case i.Admit == nil:
			return nil, ErrOnlyOne
		}
		if err := i.Tokens.useForController(ask.Token, func() error { return i.Admit(r.Context(), ask.Name) }); err != nil {
			i.Log.Warn("join refused", "controller", ask.Name, "from", r.RemoteAddr, "err", err)
			return nil, err
		}
		i.Log.Warn("controller joined", "controller", ask.Name, "from", r.RemoteAddr)
		return &joinReply{Key: i.Key}, nil
	})
}

// JoinHandler serves [JoinPath]: token and certificate request in, certificate out.
func (i *Issuer) JoinHandler() http.Handler {
	return handle(func(r *http.Request) (any, error) {
		var ask joinRequest
		if err := decode(r, &ask); err != nil {
			return nil, err
		}
		if r.TLS == nil {
			return nil, api.Errorf(api.CodePermission, "joining needs TLS")
		}
		if !validName(ask.Name) {
			return nil, badName(ask.Name)
		}
		public, err := requestKey(ask.CSR)
		if err != nil {
			return nil, err
		}
		login, err := i.Tokens.use(ask.Token, ask.Name)
		if err != nil {
			i.Log.Warn("join refused", "node", ask.Name, "from", r.RemoteAddr, "err", err)
			return nil, err
		}
		return i.issue("node joined", subject{ask.Name, hostKind(login)}, public, r)
	})
}

// RenewHandler serves [RenewPath]: a node with a valid certificate gets a new one, for
// the name it has.
func (i *Issuer) RenewHandler() http.Handler {
	return handle(func(r *http.Request) (any, error) {
		id, _ := From(r.Context())
		if id.Kind != KindNode && id.Kind != KindLogin {
			return nil, api.Errorf(api.CodePermission, "renewing needs the certificate of a node")
		}
		var ask joinRequest
		if err := decode(r, &ask); err != nil {
			return nil, err
		}
		if ask.Name != "" && ask.Name != id.Node {
			i.Log.Warn("renewal refused", "node", id.Node, "asked", ask.Name, "from", r.RemoteAddr)
			return nil, api.Errorf(api.CodePermission, "the certificate of %s can't be renewed for another node", id.Node)
		}
		public, err := requestKey(ask.CSR)
		if err != nil {
			return nil, err
		}
		return i.issue("node certificate renewed", subject{id.Node, hostKind(id.Kind == KindLogin)}, public, r)
	})
}

func (i *Issuer) issue(msg string, who subject, public any, r *http.Request) (any, error) {
	der, err := i.CA.issue(who, public, i.Revoked.issueTime(who.name, i.Tokens.now()))
	if err != nil {
		return nil, err
	}
	i.Log.Info(msg, "node", who.name, "login", who.kind == loginKind, "from", r.RemoteAddr)
	return &joinReply{Certificate: der}, nil
}

// TokenHandler serves /v1/tokens for admins: GET, POST with an [api.TokenRequest], and below it withdraw with an [api.TokenWithdrawal].
func (i *Issuer) TokenHandler() http.Handler {
	return answers(func(r *http.Request) (any, error) {
		if err := adminOnly(r); err != nil {
			return nil, err
		}
		switch {
		case r.Method == http.MethodGet && i.Tokens == nil:
			return &api.TokensReply{SchemaVersion: api.SchemaVersion, Tokens: []api.Token{}}, nil
		case r.Method == http.MethodGet:
			return &api.TokensReply{SchemaVersion: api.SchemaVersion, Tokens: i.Tokens.List()}, nil
		case strings.HasSuffix(r.URL.Path, "/withdraw") && i.Tokens != nil:
			var ask api.TokenWithdrawal
			if err := decode(r, &ask); err != nil {
				return nil, err
			}
			if err := i.Tokens.Withdraw(ask.ID); err != nil {
				return nil, err
			}
			i.Log.Info("join token withdrawn", "id", ask.ID)
			return struct{}{}, nil
		}
		var ask api.TokenRequest
		if err := decode(r, &ask); err != nil {
			return nil, err
		}
		if i.Address == "" {
			return nil, &api.Error{Code: api.CodeConflict, Message: "gangd listens on no TCP address, so no node could join",
				Hint: `set listen = ":7420" in its configuration and start it again`}
		}
		if ask.Controller && i.Admit == nil {
			return nil, ErrOnlyOne
		}
		token, err := i.Tokens.New(ask)
		if err != nil {
			return nil, err
		}
		line := joinLine{address: i.Address, fingerprint: i.CA.Fingerprint(), token: token}
		return &api.TokenReply{SchemaVersion: api.SchemaVersion, Line: line.String()}, nil
	}, http.MethodGet, http.MethodPost)
}

// RevokeHandler serves POST /v1/revoke with an [api.RevokeRequest] for admins.
func (i *Issuer) RevokeHandler() http.Handler {
	return handle(func(r *http.Request) (any, error) {
		if err := adminOnly(r); err != nil {
			return nil, err
		}
		var ask api.RevokeRequest
		if err := decode(r, &ask); err != nil {
			return nil, err
		}
		if !validName(ask.Node) {
			return nil, badName(ask.Node)
		}
		if err := i.Revoked.Revoke(ask.Node); err != nil {
			return nil, err
		}
		i.Log.Warn("node revoked", "node", ask.Node)
		return struct{}{}, nil
	})
}

// ErrOnlyOne refuses what is for several controllers.
var ErrOnlyOne = &api.Error{Code: api.CodeConflict, Message: "this controller keeps its state in SQLite, and is the only one",
	Hint: "several controllers share a database: see two-controllers.md"}

func adminOnly(r *http.Request) error {
	id, _ := From(r.Context())
	if !Allow(OpToken, id, id.UID) {
		return api.Errorf(api.CodePermission, "only an admin may do this")
	}
	return nil
}

// requestKey is the public key of a certificate request. Nothing else of the request is
// used: names and usages are the CA's to write.
func requestKey(der []byte) (any, error) {
	csr, err := x509.ParseCertificateRequest(der)
	if err == nil {
		err = csr.CheckSignature() // whoever asks has the private key
	}
	if err != nil {
		return nil, api.Errorf(api.CodeInvalid, "invalid certificate request: %v", err)
	}
	switch k := csr.PublicKey.(type) {
	case *ecdsa.PublicKey:
		if k.Curve == elliptic.P256() {
			return k, nil
		}
	case ed25519.PublicKey:
		return k, nil
	}
	return nil, api.Errorf(api.CodeInvalid, "invalid certificate request: want an ECDSA P-256 or Ed25519 key")
}

func decode(r *http.Request, into any) error {
	if err := json.NewDecoder(http.MaxBytesReader(nil, r.Body, maxBody)).Decode(into); err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return api.Errorf(api.CodeTooLarge, "the request is larger than %d bytes", maxBody)
		}
		return api.Errorf(api.CodeInvalid, "invalid JSON: %v", err)
	}
	return nil
}

// handle answers a POST with what f returns, as JSON.
func handle(f func(*http.Request) (any, error)) http.Handler { return answers(f, http.MethodPost) }

// answers is handle for calls by these methods.
func answers(f func(*http.Request) (any, error), methods ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, body := http.StatusOK, any(nil)
		var err error
		if !slices.Contains(methods, r.Method) {
			err = api.Errorf(api.CodeInvalid, "want %s", strings.Join(methods, " or "))
		} else {
			body, err = f(r)
		}
		if err != nil {
			var e *api.Error
			if !errors.As(err, &e) {
				e = api.Errorf(api.CodeInternal, "%v", err)
			}
			status, body = e.Code.HTTPStatus(), e
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		json.NewEncoder(w).Encode(body) // the caller may be gone; nobody is left to tell
	})
}

func parseCert(data []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(data)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, errors.New("no certificate in it")
	}
	return x509.ParseCertificate(block.Bytes)
}
