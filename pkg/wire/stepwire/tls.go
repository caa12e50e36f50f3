package stepwire

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"
)

// Identity is a client's key for one step.
type Identity struct {
	config      *tls.Config
	Fingerprint string // SHA-256 of the certificate, in hex
}

// NewIdentity makes one. Nothing of it is kept on a disk.
func NewIdentity() (*Identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	// The dates are wide open: peers pin the certificate itself, and a node's clock may be off.
	cert := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0)}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(der)
	return &Identity{Fingerprint: hex.EncodeToString(sum[:]), config: &tls.Config{MinVersion: tls.VersionTLS13,
		SessionTicketsDisabled: true, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}}, nil
}

// Accept does the handshake of a connection that came.
func (id *Identity) Accept(c net.Conn) (*Conn, Greeting, error) {
	_ = c.SetDeadline(time.Now().Add(greetWait))
	t := tls.Server(c, id.config)
	if err := t.Handshake(); err != nil {
		return nil, Greeting{}, err
	}
	_ = c.SetDeadline(time.Time{})
	conn := New(t)
	g, err := conn.Greet()
	return conn, g, err
}

// dialWait is how long one address is tried: a client has several, and those that are no
// way from here may swallow what is sent.
const dialWait = 3 * time.Second

// Dial connects to a client of a certificate, at the first address that answers, and greets.
func Dial(ctx context.Context, hosts []string, fingerprint string, g *Greeting) (*Conn, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true, // the check is the next line's
		VerifyPeerCertificate: func(certs [][]byte, _ [][]*x509.Certificate) error {
			if len(certs) == 1 {
				if sum := sha256.Sum256(certs[0]); hex.EncodeToString(sum[:]) == fingerprint {
					return nil
				}
			}
			return errors.New("somebody else answers at the address of the step's client")
		}}
	var all []error
	for _, h := range hosts {
		c, err := dial(ctx, h, conf)
		if err == nil {
			if err = c.SendJSON(Hello, 0, g); err == nil {
				return c, nil
			}
			_ = c.Close()
		}
		all = append(all, err)
	}
	return nil, fmt.Errorf("reach the client of the step: %w", errors.Join(all...))
}

func dial(ctx context.Context, host string, conf *tls.Config) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialWait)
	defer cancel()
	d := tls.Dialer{Config: conf}
	c, err := d.DialContext(ctx, "tcp", host)
	if err != nil {
		return nil, err
	}
	return New(c), nil
}
