package rpc

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/wire/people"
)

// namesPatience bounds how long an admin waits for the directory of people that knows whom he names.
const namesPatience = 4 * time.Second

// whom is a list of names that an admin's request has, and who knows them.
type whom struct {
	field, kind string
	names       *[]string
	look        func(ctx context.Context, d *people.Directory, name string) (string, error) // the name as the directory has it
}

func users(field string, names *[]string) whom {
	return whom{field, "user", names, func(ctx context.Context, d *people.Directory, name string) (string, error) {
		if _, err := strconv.ParseUint(name, 10, 32); err == nil {
			return name, nil // may be anybody's: who has no name is known by his number
		}
		u, err := d.ByName(ctx, name)
		return u.Name, err
	}}
}

func groups(field string, names *[]string) whom {
	return whom{field, "group", names, func(ctx context.Context, d *people.Directory, name string) (string, error) {
		_, err := d.Group(ctx, name)
		return name, err
	}}
}

// knownPeople refuses names that this host and its directory do not know, and writes those that they do as they are written there.
// A directory that does not answer refuses nobody: from the first name on that it says nothing of they are taken as they are.
func (s *Server) knownPeople(ctx context.Context, lists ...whom) error {
	ctx, cancel := context.WithTimeout(ctx, namesPatience)
	defer cancel()
	for _, l := range lists {
		if l.names == nil || s.People == nil {
			continue
		}
		for i, name := range *l.names {
			if strings.EqualFold(name, "ALL") && len(*l.names) == 1 {
				continue
			}
			written, err := l.look(ctx, s.People, name)
			switch {
			case errors.Is(err, people.ErrUnknown):
				return &api.Error{Code: api.CodeInvalid, Message: fmt.Sprintf("%s=%s: the controller's host knows no %s %q", l.field, short(*l.names),
					l.kind, name),
					Hint: fmt.Sprintf("names are as in getent %s", map[string]string{"user": "passwd", "group": "group"}[l.kind])}
			case err != nil:
				s.Log.Warn("names are taken as they are written", "field", l.field, "from", name, "err", err)
				return nil
			}
			(*l.names)[i] = written
		}
	}
	return nil
}

// short is a list of names for people, of a long one its beginning.
func short(names []string) string {
	const most = 8
	if len(names) > most {
		return strings.Join(names[:most], ",") + ",..."
	}
	return strings.Join(names, ",")
}
