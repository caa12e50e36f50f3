package proc

import (
	"fmt"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// AsUser calls f with the rights that a user has on files, and with no other: those of the calling thread, which has
// its own again afterwards. What f opens is what the user could open.
func AsUser(c *syscall.Credential, f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	old, err := unix.Getgroups()
	if err != nil {
		return err
	}
	groups := make([]int, len(c.Groups))
	for i, g := range c.Groups {
		groups[i] = int(g)
	}
	if err := unix.Setgroups(groups); err != nil {
		return fmt.Errorf("become user id %d: %w", c.Uid, err)
	}
	gid, err := unix.SetfsgidRetGid(int(c.Gid))
	if err == nil {
		var uid, now int
		if uid, err = unix.SetfsuidRetUid(int(c.Uid)); err == nil {
			if now, err = unix.SetfsuidRetUid(-1); err == nil && now != int(c.Uid) { // the calls themselves don't say that they failed
				err = unix.EPERM
			}
			if err == nil {
				err = f()
			} else {
				err = fmt.Errorf("become user id %d: %w", c.Uid, err)
			}
			_, _ = unix.SetfsuidRetUid(uid)
		}
		_, _ = unix.SetfsgidRetGid(gid)
	}
	if e := unix.Setgroups(old); e != nil {
		panic("back from the rights of a user: " + e.Error()) // it would act with his groups from here on
	}
	return err
}
