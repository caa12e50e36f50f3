package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/wire/auth"
	"gangd/pkg/wire/dirlock"
)

// runningFile is what a daemon goes by, in its state directory: for who compares a file with that.
const runningFile = "running.json"

type running struct {
	File   string  `json:"file"`
	Values []Value `json:"values"`
}

// KeepRunning leaves in a state directory what its daemon goes by, and which file that is from.
func KeepRunning(stateDir, file string, values []Value) error {
	data, err := json.MarshalIndent(running{file, values}, "", "\t")
	if err != nil {
		return err
	}
	return auth.WriteFile(filepath.Join(stateDir, runningFile), append(data, '\n'))
}

// against compares a configuration with what the daemon of a state directory goes by.
func against(daemon, stateDir string, values []Value, at func(string) string) ([]api.ConfigChange, error) {
	if pid, err := dirlock.Holder(stateDir); err != nil || pid == 0 {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("what the running %s goes by: %w", daemon, err)
		}
		return nil, fmt.Errorf("no %s runs here with state_dir = %q", daemon, stateDir)
	}
	path := filepath.Join(stateDir, runningFile)
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("what the running %s goes by: %w", daemon, err)
	}
	var r running
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return Changes(r.Values, values, at), nil
}

// AgainstController is what a file says otherwise than the gangd that runs here goes by.
func AgainstController(path string, set []string) ([]api.ConfigChange, error) {
	file, err := readText(path)
	if err != nil {
		return nil, err
	}
	c, err := controllerOf(file, set)
	if err != nil {
		return nil, err
	}
	return against("gangd", c.StateDir, c.Values(), (&checks{file: file, at: keyLines(file.data)}).stands)
}

// AgainstNode is what a file says otherwise than the gnoded that runs here goes by.
func AgainstNode(path, name string, set []string) ([]api.ConfigChange, error) {
	file, err := readText(path)
	if err != nil {
		return nil, err
	}
	n, err := nodeOf(file, name, set)
	if err != nil {
		return nil, err
	}
	return against("gnoded", n.StateDir, n.Values(), (&checks{file: file, at: keyLines(file.data)}).stands)
}

// ChangesText says changes on one line.
func ChangesText(changes []api.ConfigChange) string {
	var all []string
	for i := range changes {
		all = append(all, changes[i].Text())
	}
	return strings.Join(all, "; ")
}
