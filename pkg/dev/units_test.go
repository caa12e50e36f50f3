package dev

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/node/proc"
)

// unit is a file of systemd: the values of each key, in their order.
type unit map[string][]string

func readUnit(t *testing.T, name string) unit {
	t.Helper()
	text, err := os.ReadFile("../../dist/systemd/" + name)
	if err != nil {
		t.Fatal(err)
	}
	u := unit{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if key, value, ok := strings.Cut(line, "="); ok && line[0] != '#' {
			u[key] = append(u[key], value)
		}
	}
	return u
}

func (u unit) want(t *testing.T, name string, pairs ...string) {
	t.Helper()
	for _, p := range pairs {
		key, value, _ := strings.Cut(p, "=")
		if !slices.Contains(u[key], value) {
			t.Errorf("%s: %s=%v, want %q", name, key, u[key], value)
		}
	}
}

func (u unit) seconds(t *testing.T, name, key string) time.Duration {
	t.Helper()
	if len(u[key]) != 1 {
		t.Fatalf("%s: %s=%v, want one", name, key, u[key])
	}
	n, err := strconv.Atoi(u[key][0])
	if err != nil || n <= 0 {
		t.Fatalf("%s: %s=%s, want seconds", name, key, u[key][0])
	}
	return time.Duration(n) * time.Second
}

// TestUnitsBounceBeforeTheLease: a daemon that hangs is killed and its successor in session
// before the lease ends, although that was last renewed a while ago, and although the first
// successor hangs as well.
func TestUnitsBounceBeforeTheLease(t *testing.T) {
	lease := api.DefaultSettings().Lease
	const (
		renewed = 20               // a lease is renewed when a twentieth of it has passed
		inTouch = 30 * time.Second // a greeting that hung with the daemon before, and the next one
	)
	for _, name := range []string{"gangd.service", "gnoded.service"} {
		u := readUnit(t, name)
		u.want(t, name, "Type=notify", "Restart=always", "StartLimitIntervalSec=0", "WatchdogSignal=SIGABRT")
		hang := u.seconds(t, name, "WatchdogSec") + u.seconds(t, name, "TimeoutAbortSec") + u.seconds(t, name, "RestartSec") + u.seconds(t, name, "TimeoutStartSec")
		if took := 2*hang + lease/renewed + inTouch; took >= lease {
			t.Errorf("%s: two hangs cost %v, the lease is %v", name, took, lease)
		}
	}
	name := "gnoded-login.service"
	readUnit(t, name).want(t, name, "Type=notify", "Restart=always", "StartLimitIntervalSec=0")
}

// TestUnitsForbidWhatTheyCan: gangd and the relay need nothing; what is forbidden to gnoded is
// forbidden to the users' jobs.
func TestUnitsForbidWhatTheyCan(t *testing.T) {
	for _, name := range []string{"gangd.service", "gnoded-login.service"} {
		u := readUnit(t, name)
		u.want(t, name, "NoNewPrivileges=yes", "CapabilityBoundingSet=", "ProtectSystem=strict", "ProtectHome=yes", "PrivateTmp=yes", "PrivateDevices=yes",
			"MemoryDenyWriteExecute=yes", "LockPersonality=yes", "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6", "SystemCallFilter=@system-service",
			"StateDirectoryMode=0700", "LimitCORE=0")
	}
	name := "gnoded.service"
	u := readUnit(t, name)
	u.want(t, name, "KillMode=process", "OOMPolicy=continue", "Delegate=yes", "DelegateSubgroup="+proc.LeafName)
	for key := range u {
		for _, inherited := range []string{"NoNewPrivileges", "ProtectSystem", "ProtectHome", "PrivateTmp", "PrivateDevices", "DevicePolicy", "ProtectClock",
			"ProtectControlGroups", "RestrictNamespaces", "RestrictAddressFamilies", "SystemCallFilter", "MemoryDenyWriteExecute", "LimitCORE", "UMask"} {
			if key == inherited {
				t.Errorf("%s: %s holds for the users' jobs as well", name, key)
			}
		}
	}
}
