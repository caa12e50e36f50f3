package auth

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"gangd/pkg/api"
)

// joinTimeout bounds one call of the join protocol, dialling included.
const joinTimeout = 30 * time.Second

// Joined is what [Join] brought home.
type Joined struct {
	Name    string
	Login   bool   // it is a login host, by the line's token
	Address string // host:port of the controller
	Expires time.Time
}

// Join makes a key in dir, has it certified as node name by the controller that the line
// from `gangd token new` names, and keeps certificate and CA beside it. The controller is
// believed only when its CA has the line's fingerprint; the token is sent after that.
func Join(ctx context.Context, line, name, dir string) (*Joined, error) {
	l, err := parseLine(line)
	if err != nil {
		return nil, err
	}
	if !validName(name) {
		return nil, badName(name)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	pin := &pinned{fingerprint: l.fingerprint}
	key, csr, err := newRequest()
	if err != nil {
		return nil, err
	}
	reply, err := post(ctx, pin.config(), l.address, JoinPath, &joinRequest{Token: l.token, Name: name, CSR: csr})
	if err != nil {
		return nil, err
	}
	leaf, who, err := checkIssued(reply.Certificate, pin.ca, name, key)
	if err != nil {
		return nil, err
	}
	caPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pin.ca.Raw})
	if err := WriteFile(filepath.Join(dir, caFile), caPEM); err != nil {
		return nil, err
	}
	if err := keep(dir, key, reply.Certificate); err != nil {
		return nil, err
	}
	return &Joined{Name: name, Login: who.kind == loginKind, Address: l.address, Expires: leaf.NotAfter}, nil
}

// JoinHere joins by the controller whose socket it is, on this host, as root there: it makes the line, too.
func JoinHere(ctx context.Context, socket, name, dir string) error {
	ask, _ := json.Marshal(&api.TokenRequest{Node: name, TTLSeconds: int64(joinTimeout / time.Second)}) // texts never fail
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://gangd/v1/tokens", bytes.NewReader(ask))
	if err != nil {
		return err
	}
	tr := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	defer tr.CloseIdleConnections()
	reply := new(api.TokenReply)
	if err := exchange(&http.Client{Transport: tr}, req, socket, reply); err != nil {
		return err
	}
	_, err = Join(ctx, reply.Line, name, dir)
	return err
}

// JoinController gets the key of what the controllers of a cluster share, from the one that the line from
// `gangd controller new` names.
func JoinController(ctx context.Context, line, name string) ([]byte, error) {
	l, err := parseLine(line)
	if err != nil {
		return nil, err
	}
	if !validName(name) {
		return nil, badName(name)
	}
	reply, err := post(ctx, (&pinned{fingerprint: l.fingerprint}).config(), l.address, ControllerJoinPath,
		&joinRequest{Token: l.token, Name: name})
	if err != nil {
		return nil, err
	}
	return reply.Key, nil
}

// renew replaces the certificate in dir by a new one with a new key.
func renew(ctx context.Context, dir, address string) error {
	ca, err := readCA(dir)
	if err != nil {
		return err
	}
	conf, err := NodeTLS(dir)
	if err != nil {
		return err
	}
	name, _, err := nodeName(dir)
	if err != nil {
		return err
	}
	key, csr, err := newRequest()
	if err != nil {
		return err
	}
	reply, err := post(ctx, conf, address, RenewPath, &joinRequest{Name: name, CSR: csr})
	if err != nil {
		return err
	}
	if _, _, err := checkIssued(reply.Certificate, ca, name, key); err != nil {
		return err
	}
	return keep(dir, key, reply.Certificate)
}

// pinned accepts a controller whose CA has the fingerprint, and remembers that CA.
type pinned struct {
	fingerprint string
	ca          *x509.Certificate
}

func (p *pinned) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		ServerName: controllerName,
		NextProtos: []string{"http/1.1"},
		// The CA is not known yet; verify does what is skipped here, against the pin.
		InsecureSkipVerify: true,
		VerifyConnection:   p.verify,
	}
}

func (p *pinned) verify(s tls.ConnectionState) error {
	for _, c := range s.PeerCertificates {
		if subtle.ConstantTimeCompare([]byte(fingerprint(c)), []byte(p.fingerprint)) == 1 {
			p.ca = c
		}
	}
	if p.ca == nil {
		return errors.New("the controller at this address is another one than the line was made by (CA fingerprint differs); ask for a new " +
			"line, or for who is between")
	}
	// Anyone can show the CA's certificate; only the controller has one signed by it.
	pool := x509.NewCertPool()
	pool.AddCert(p.ca)
	_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: pool, DNSName: controllerName,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	return err
}

func newRequest() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	return key, csr, err
}

// checkIssued refuses a certificate that would not work later, while the old one is
// still there.
func checkIssued(der []byte, ca *x509.Certificate, name string, key *ecdsa.PrivateKey) (*x509.Certificate, subject, error) {
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, subject{}, fmt.Errorf("the controller's certificate for this node: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(ca)
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		return nil, subject{}, fmt.Errorf("the controller's certificate for this node (is the clock right?): %w", err)
	}
	who, _ := subjectOf(leaf) // of nobody: it has no name
	if who.name != name || !key.PublicKey.Equal(leaf.PublicKey) {
		return nil, subject{}, errors.New("the controller's certificate is not for this node's name and key")
	}
	return leaf, who, nil
}

func keep(dir string, key *ecdsa.PrivateKey, der []byte) error {
	data, err := encodePair(key, der)
	if err != nil {
		return err
	}
	return WriteFile(filepath.Join(dir, nodeFile), data)
}

// post makes one call, and makes it again where another controller leads.
func post(ctx context.Context, conf *tls.Config, address, path string, ask *joinRequest) (*joinReply, error) {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	reply, err := postOnce(ctx, conf, address, path, ask)
	var e *api.Error
	if errors.As(err, &e) && e.Word != nil && e.Word.Leader != nil {
		for _, a := range e.Word.Leader.Addresses {
			if reply, err = postOnce(ctx, conf, a, path, ask); err == nil || errors.As(err, &e) {
				break
			}
		}
	}
	return reply, err
}

// postOnce makes it over a connection of its own.
func postOnce(ctx context.Context, conf *tls.Config, address, path string, ask *joinRequest) (*joinReply, error) {
	body, _ := json.Marshal(ask) // texts never fail
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+address+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	tr := &http.Transport{TLSClientConfig: conf, DialContext: (&net.Dialer{}).DialContext, DisableKeepAlives: true}
	defer tr.CloseIdleConnections()
	// No redirects: the token is for the pinned controller alone.
	client := &http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	reply := new(joinReply)
	if err := exchange(client, req, address, reply); err != nil {
		return nil, err
	}
	return reply, nil
}

// exchange makes a call and reads its answer.
func exchange(client *http.Client, req *http.Request, address string, reply any) error {
	res, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("controller %s: %w", address, errors.Unwrap(err))
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, maxBody))
	if err != nil {
		return fmt.Errorf("controller %s: %w", address, err)
	}
	if res.StatusCode != http.StatusOK {
		e := new(api.Error)
		if json.Unmarshal(data, e) != nil || e.Code == "" {
			return fmt.Errorf("controller %s answered %s", address, res.Status)
		}
		return e
	}
	if err := json.Unmarshal(data, reply); err != nil {
		return fmt.Errorf("controller %s: %w", address, err)
	}
	return nil
}
