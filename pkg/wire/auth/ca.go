package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"
)

const (
	caLife   = 20 * 365 * 24 * time.Hour // outlives the cluster; to change it is to join anew
	nodeLife = 30 * 24 * time.Hour
	// skew is how far a node's clock may be behind: certificates begin that much earlier
	// than they were issued.
	skew = 5 * time.Minute
	// controllerName is in the controller's certificate. Nodes ask for it whatever address
	// they dial, so a controller may move without a new certificate.
	controllerName = "controller.gangd.internal"
)

// CA signs the certificates of one cluster.
type CA struct {
	cert *x509.Certificate
	key  crypto.Signer

	mu  sync.Mutex
	own map[x509.ExtKeyUsage]*tls.Certificate // the controller's, made anew in memory when a third of their life is left
}

// OpenCA reads the CA of a cluster, and makes it at the first start.
func OpenCA(v Vault) (*CA, error) {
	all, err := v.Get()
	data, ok := all[CAName]
	if err == nil && !ok {
		if data, err = newCA(); err == nil {
			err = v.Put(CAName, data)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	key, cert, err := parsePair(data)
	if err != nil {
		return nil, fmt.Errorf("certificate authority: %s in %s: %w", CAName, v, err)
	}
	return &CA{cert: cert, key: key}, nil
}

// Secret is a key for a purpose that only who has the CA's can make: it needs no file, and a
// backup that has the CA has it too.
func (c *CA) Secret(purpose string) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(c.key)
	if err != nil {
		return nil, err
	}
	return hkdf.Key(sha256.New, der, nil, purpose, sha256.Size)
}

func newCA() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	der, err := sign(&x509.Certificate{
		Subject:               pkix.Name{CommonName: "gangd CA"},
		NotBefore:             now.Add(-skew),
		NotAfter:              now.Add(caLife),
		KeyUsage:              x509.KeyUsageCertSign,
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true, // signs nodes and controllers, no further authorities
	}, nil, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return encodePair(key, der)
}

// Fingerprint is the SHA-256 of the CA's certificate in hex, which join lines carry.
func (ca *CA) Fingerprint() string { return fingerprint(ca.cert) }

func fingerprint(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return hex.EncodeToString(sum[:])
}

func (ca *CA) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(ca.cert)
	return p
}

// subject is who a certificate speaks for. Nodes and login hosts share one space of names,
// so that a revocation means one machine.
type subject struct {
	name string
	kind kind
}

// kind is a role. It is in the certificate, as the host of its URI, so that neither a configuration nor a
// request can turn a node, whose root is less trusted, into a host that vouches for all.
type kind string

const (
	nodeKind       kind = "node"
	loginKind      kind = "login"      // its users are known by its word, it runs nothing
	controllerKind kind = "controller" // the same, and for root and admins too: it has the CA's key
)

// hostKind is that of a machine that joins with a token.
func hostKind(login bool) kind {
	if login {
		return loginKind
	}
	return nodeKind
}

func (s subject) uri() *url.URL {
	return &url.URL{Scheme: "gang", Host: string(s.kind), Path: "/" + s.name}
}

// issue signs the public key of a node or login host for 30 days.
func (ca *CA) issue(s subject, public any, issued time.Time) ([]byte, error) {
	return sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: s.name},
		URIs:        []*url.URL{s.uri()},
		NotBefore:   issued.Add(-skew),
		NotAfter:    issued.Add(nodeLife),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, ca.cert, public, ca.key)
}

// issuedAt is when a node's certificate was issued, to the second.
func issuedAt(c *x509.Certificate) time.Time { return c.NotBefore.Add(skew) }

// subjectOf is who a certificate speaks for.
func subjectOf(c *x509.Certificate) (subject, error) {
	if len(c.URIs) == 1 && c.URIs[0].Scheme == "gang" {
		name, k := strings.TrimPrefix(c.URIs[0].Path, "/"), kind(c.URIs[0].Host)
		if validName(name) && (k == nodeKind || k == loginKind || k == controllerKind) {
			return subject{name, k}, nil
		}
	}
	return subject{}, errors.New("not the certificate of a node")
}

// controllerCert is the certificate that the controller serves with, or with a subject calls others
// with. Its key never touches a disk.
func (ca *CA) controllerCert(use x509.ExtKeyUsage, s *subject) (*tls.Certificate, error) {
	ca.mu.Lock()
	defer ca.mu.Unlock()
	if c := ca.own[use]; c != nil && !renewable(c.Leaf, time.Now()) {
		return c, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "gangd"},
		NotBefore:   now.Add(-skew),
		NotAfter:    now.Add(nodeLife),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{use},
	}
	if s == nil {
		template.DNSNames = []string{controllerName}
	} else {
		template.URIs = []*url.URL{s.uri()}
	}
	der, err := sign(template, ca.cert, key.Public(), ca.key)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	// The CA goes along so that a joining node can compare its fingerprint.
	c := &tls.Certificate{Certificate: [][]byte{der, ca.cert.Raw}, PrivateKey: key, Leaf: leaf}
	if ca.own == nil {
		ca.own = map[x509.ExtKeyUsage]*tls.Certificate{}
	}
	ca.own[use] = c
	return c, nil
}

// renewable holds in the last third of a certificate's life.
func renewable(c *x509.Certificate, now time.Time) bool {
	return c.NotAfter.Sub(now) < c.NotAfter.Sub(c.NotBefore)/3
}

// sign makes a certificate, with a random serial number; parent nil signs by itself.
func sign(template, parent *x509.Certificate, public any, key crypto.Signer) ([]byte, error) {
	if parent == nil {
		parent = template
	}
	return x509.CreateCertificate(rand.Reader, template, parent, public, key)
}

func encodePair(key crypto.Signer, der []byte) ([]byte, error) {
	k, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: k}),
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...), nil
}

// parsePair reads what encodePair wrote and checks that the halves belong together.
func parsePair(data []byte) (crypto.Signer, *x509.Certificate, error) {
	pair, err := tls.X509KeyPair(data, data)
	if err != nil {
		return nil, nil, err
	}
	return pair.PrivateKey.(crypto.Signer), pair.Leaf, nil // each kind that package tls reads can sign
}
