package shim

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// Credentials are those of a user.
type Credentials struct {
	Switch bool     `json:"switch,omitempty"` // false: whoever this process is
	UID    uint32   `json:"uid"`
	GID    uint32   `json:"gid"`
	Groups []uint32 `json:"groups,omitempty"`
}

// Credentials are those of the job's user.
func (s *Spec) Credentials() Credentials {
	return Credentials{Switch: s.SwitchUser, UID: s.UID, GID: s.GID, Groups: s.Groups}
}

func (c *Credentials) credential() *syscall.Credential {
	return &syscall.Credential{Uid: c.UID, Gid: c.GID, Groups: c.Groups}
}

func (c *Credentials) groups() []int {
	groups := make([]int, len(c.Groups))
	for i, g := range c.Groups {
		groups[i] = int(g)
	}
	return groups
}

// become gives up all rights but the user's, for good, on every thread of this process.
func (c *Credentials) become() error {
	if !c.Switch {
		return nil
	}
	if err := syscall.Setgroups(c.groups()); err != nil {
		return fmt.Errorf("set groups: %w", err)
	}
	if err := syscall.Setresgid(int(c.GID), int(c.GID), int(c.GID)); err != nil {
		return fmt.Errorf("set group %d: %w", c.GID, err)
	}
	if err := syscall.Setresuid(int(c.UID), int(c.UID), int(c.UID)); err != nil {
		return fmt.Errorf("set user %d: %w", c.UID, err)
	}
	if _, _, errno := syscall.AllThreadsSyscall(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0); errno != 0 {
		return fmt.Errorf("no_new_privs: %w", errno)
	}
	return nil
}
