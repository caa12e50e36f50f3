package program

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"gangd/pkg/wire/people"
)

// What is wrong with a user or group that [Become] is asked for.
var (
	ErrNotRoot = errors.New("only root submits for somebody else")
	errNoUser  = errors.New("there is no such user here")
	errNoGroup = errors.New("there is no such group here")
)

// OfBecome is the option that an error of [Become] for a user is about.
func OfBecome(err error, who string) string {
	if who == "" || errors.Is(err, errNoGroup) {
		return "gid"
	}
	return "uid"
}

// Become makes this process one of a user and a group, by name or number; an empty one stays as it is. Whom a job belongs to is who
// submits it, as the kernel says: so what shall be another's is submitted as that other.
func Become(who, group string) error {
	uid, gid := os.Getuid(), os.Getgid()
	groups, err := syscall.Getgroups()
	if err != nil {
		return err
	}
	if who != "" {
		u, err := people.Here.Find(context.Background(), who)
		switch {
		case errors.Is(err, people.ErrUnknown):
			return errNoUser
		case err != nil:
			return err
		}
		if uid = int(u.UID); uid != os.Getuid() {
			ids, err := people.Here.Groups(context.Background(), u)
			if err != nil {
				return fmt.Errorf("groups of %s: %w", who, err)
			}
			groups, gid = nil, int(u.GID)
			for _, id := range ids {
				groups = append(groups, int(id))
			}
		}
	}
	if group != "" {
		id, err := groupNamed(context.Background(), group)
		switch {
		case errors.Is(err, people.ErrUnknown):
			return errNoGroup
		case err != nil:
			return err
		}
		gid = int(id)
	}
	switch {
	case uid == os.Getuid() && gid == os.Getgid():
		return nil
	case os.Getuid() != 0:
		return ErrNotRoot
	}
	return errors.Join(syscall.Setgroups(groups), syscall.Setgid(gid), syscall.Setuid(uid))
}

// groupNamed is the number of a group, by name or by a number that somebody has.
func groupNamed(ctx context.Context, text string) (uint32, error) {
	gid, err := people.Here.Group(ctx, text)
	if n, e := strconv.ParseUint(text, 10, 32); err != nil && e == nil {
		_, err = people.Here.GroupName(ctx, uint32(n))
		return uint32(n), err
	}
	return gid, err
}
