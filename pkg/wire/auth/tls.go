package auth

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"gangd/pkg/wire/trusted"
)

// The files of a node that has joined, in its state directory.
const (
	nodeFile = "node.pem" // key and certificate in one, so that a crash can't part them
	caFile   = "ca.pem"
)

// ErrNotJoined says that there is no certificate.
var ErrNotJoined = errors.New("this node has not joined a cluster; run: gnoded join LINE, with a line from gangd token new")

// ServerTLS is the controller's side. A client without a certificate gets in, since that
// is how it joins; it is nobody to everything else. revoked may be nil.
func ServerTLS(ca *CA, revoked *Revocations) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		ClientAuth: tls.VerifyClientCertIfGiven,
		ClientCAs:  ca.pool(),
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return ca.controllerCert(x509.ExtKeyUsageServerAuth, nil)
		},
		NextProtos: []string{"http/1.1"}, // the node session is a WebSocket upgrade
		// A resumed session would carry the certificate of a time before a revocation.
		SessionTicketsDisabled: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 {
				return nil
			}
			who, err := subjectOf(s.PeerCertificates[0])
			if err != nil {
				return err
			}
			if revoked != nil && revoked.cover(who, s.PeerCertificates[0]) {
				return fmt.Errorf("the certificate of node %s is revoked", who.name)
			}
			return nil
		},
	}
}

// ControllerTLS is the side of a controller that calls another one of its cluster, for those that call it.
func ControllerTLS(ca *CA, name string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		RootCAs:    ca.pool(),
		ServerName: controllerName,
		NextProtos: []string{"http/1.1"},
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return ca.controllerCert(x509.ExtKeyUsageClientAuth, &subject{name, controllerKind})
		},
	}
}

// NodeTLS is the node's side, from the files that [Join] left in dir. A certificate that
// was renewed is used from the next connection on.
func NodeTLS(dir string) (*tls.Config, error) {
	ca, err := readCA(dir)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(ca)
	own := &nodeCert{path: filepath.Join(dir, nodeFile)}
	if _, err := own.get(); err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		RootCAs:    pool,
		ServerName: controllerName,
		NextProtos: []string{"http/1.1"},
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return own.get()
		},
	}, nil
}

// nodeName is the name in the node's certificate, and when that ends.
func nodeName(dir string) (name string, expires time.Time, err error) {
	c, err := (&nodeCert{path: filepath.Join(dir, nodeFile)}).get()
	if err != nil {
		return "", time.Time{}, err
	}
	s, err := subjectOf(c.Leaf)
	return s.name, c.Leaf.NotAfter, err
}

// IsLogin reports whether the certificate in dir is a login host's.
func IsLogin(dir string) (bool, error) {
	c, err := (&nodeCert{path: filepath.Join(dir, nodeFile)}).get()
	if err != nil {
		return false, err
	}
	s, err := subjectOf(c.Leaf)
	return s.kind == loginKind, err
}

func readCA(dir string) (*x509.Certificate, error) {
	path := filepath.Join(dir, caFile)
	err := trusted.File(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, ErrNotJoined
	}
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	ca, err := parseCert(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return ca, nil
}

// nodeCert is the node's certificate, read again when its file was replaced.
type nodeCert struct {
	path string

	mu   sync.Mutex
	info os.FileInfo
	cert *tls.Certificate
}

func (n *nodeCert) get() (*tls.Certificate, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	info, err := os.Stat(n.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, ErrNotJoined
	}
	if err != nil {
		return nil, err
	}
	// A rename gives another inode, whatever the clocks say.
	if n.cert != nil && os.SameFile(info, n.info) && info.ModTime().Equal(n.info.ModTime()) {
		return n.cert, nil
	}
	cert, err := tls.LoadX509KeyPair(n.path, n.path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", n.path, err)
	}
	n.info, n.cert = info, &cert
	return n.cert, nil
}
