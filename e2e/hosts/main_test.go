package hosts

import (
	"os"
	"testing"

	"gangd/e2e/trial"
)

// role is what this test binary is to be: the tests, a host's first process, or a rank.
const role = "GANG_E2E_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "host":
		hostMain()
	case "meet":
		meetMain()
	case "rank":
		rankMain()
	case "killer":
		killerMain()
	}
	os.Exit(m.Run())
}

func isLong() bool { return os.Getenv("GANG_E2E_CHAOS") != "" }

// long is for what takes minutes: make chaos runs it.
func long(t *testing.T) {
	t.Helper()
	if !isLong() {
		t.Skip("takes minutes: make chaos runs it")
	}
}

func rounds(usual int) int { return trial.Rounds(usual) }
