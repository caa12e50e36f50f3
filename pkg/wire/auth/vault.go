package auth

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// What a cluster keeps about certificates, by its name in a [Vault].
const (
	CAName      = "ca.pem" // key and certificate in one: they can't come apart in a crash
	tokensName  = "tokens.json"
	revokedName = "revoked.json"
)

// Vault keeps the authority, the tokens and the revocations of a cluster: the files of one controller, or what
// several share. String says where that is.
type Vault interface {
	fmt.Stringer
	// Get reads all that is there, by name.
	Get() (map[string][]byte, error)
	// Put replaces one. [ErrChanged]: it is not any more what this vault read or wrote last.
	Put(name string, data []byte) error
}

// ErrChanged: another controller has changed it meanwhile. Read it again.
var ErrChanged = errors.New("changed by another controller meanwhile")

// Files is a [Vault] of one controller: a directory.
type Files string

func (f Files) String() string { return string(f) }

// Get implements [Vault]; a directory that is not there is empty.
func (f Files) Get() (map[string][]byte, error) {
	all := map[string][]byte{}
	for _, name := range []string{CAName, tokensName, revokedName} {
		data, err := os.ReadFile(filepath.Join(string(f), name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all[name] = data
	}
	return all, nil
}

// Put implements [Vault].
func (f Files) Put(name string, data []byte) error {
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return err
	}
	return WriteFile(filepath.Join(string(f), name), data)
}

// document is one piece of JSON in a vault.
type document struct {
	vault Vault
	name  string
}

// read takes in what the vault has; what is not there leaves into as it is.
func (d document) read(into any) error {
	all, err := d.vault.Get()
	if err != nil {
		return err
	}
	return d.decode(all, into)
}

func (d document) decode(all map[string][]byte, into any) error {
	data, ok := all[d.name]
	if !ok {
		return nil
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s in %s: %w", d.name, d.vault, err)
	}
	return nil
}

// write puts what next gives, for people to read too. Where another controller was faster it begins again
// with reload.
func (d document) write(next func() (any, error), reload func() error) error {
	for {
		v, err := next()
		if err != nil {
			return err
		}
		data, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			return err
		}
		if err = d.vault.Put(d.name, data); !errors.Is(err, ErrChanged) {
			return err
		}
		if err := reload(); err != nil {
			return err
		}
	}
}
