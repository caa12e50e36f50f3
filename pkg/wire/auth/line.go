package auth

import (
	"bufio"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// errLine is the answer to what is not a join line.
var errLine = errors.New("not a join line: want gang://TOKEN@HOST:PORT/FINGERPRINT, in one piece, as gangd token new prints it")

// joinLine is what a node needs to join: one word without a character that a shell minds.
type joinLine struct {
	address     string // host:port
	fingerprint string // of the CA: SHA-256 in hex
	token       string
}

func (l joinLine) String() string {
	return (&url.URL{Scheme: "gang", User: url.User(l.token), Host: l.address, Path: "/" + l.fingerprint}).String()
}

// maxLine bounds what is read of a line, which has about 150 bytes.
const maxLine = 4096

// ReadLine gives the join line that an argument is, or with - the first of r, where no list of processes shows it.
func ReadLine(arg string, r io.Reader) (string, error) {
	if arg != "-" {
		return arg, nil
	}
	line, err := bufio.NewReader(io.LimitReader(r, maxLine)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	return line, nil
}

// parseLine never quotes its input in an error: it holds a secret.
func parseLine(s string) (joinLine, error) {
	u, err := url.Parse(strings.TrimSpace(s))
	if err != nil || u.Scheme != "gang" || u.RawQuery != "" || u.Fragment != "" {
		return joinLine{}, errLine
	}
	l := joinLine{address: u.Host, fingerprint: strings.TrimPrefix(u.Path, "/"), token: u.User.Username()}
	host, port, err := net.SplitHostPort(l.address)
	if err != nil || host == "" {
		return joinLine{}, errLine
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return joinLine{}, errLine
	}
	if b, err := hex.DecodeString(l.fingerprint); err != nil || len(b) != 32 {
		return joinLine{}, errLine
	}
	if b, err := base64.RawURLEncoding.DecodeString(l.token); err != nil || len(b) != 32 {
		return joinLine{}, errLine
	}
	return l, nil
}
