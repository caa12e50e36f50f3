package fake

import (
	"net/http"
	"slices"

	"gangd/pkg/api"
)

func (c *Controller) reservations(r *http.Request) (any, error) {
	out := api.ReservationsReply{SchemaVersion: api.SchemaVersion, Reservations: c.Reserved}
	if names := r.URL.Query()["name"]; names != nil {
		out.Reservations = []api.Reservation{}
		for _, name := range names {
			at := c.reservation(name)
			if at < 0 {
				return nil, api.Errorf(api.CodeNotFound, "no reservation %q", name)
			}
			out.Reservations = append(out.Reservations, c.Reserved[at])
		}
	}
	return out, nil
}

func (c *Controller) reservation(name string) int {
	return slices.IndexFunc(c.Reserved, func(r api.Reservation) bool { return r.Name == name })
}

// reserve makes a reservation, or changes the one that the path names.
func (c *Controller) reserve(r *http.Request) (any, error) {
	var req api.ReservationRequest
	if err := body(r, &req); err != nil {
		return nil, err
	}
	if name := r.PathValue("name"); name != "" {
		if req.Name = name; c.reservation(name) < 0 {
			return nil, api.Errorf(api.CodeNotFound, "no reservation %q", name)
		}
	} else {
		c.Reserved = append(c.Reserved, api.Reservation{Name: req.Name})
	}
	one := &c.Reserved[c.reservation(req.Name)]
	if req.Start != nil {
		one.Start = *req.Start
	}
	if req.End != nil {
		one.End = *req.End
	}
	if req.Duration != nil {
		one.End = one.Start.Add(*req.Duration)
	}
	for _, list := range []struct {
		to   *[]string
		from *[]string
	}{{&one.Nodes, req.Nodes}, {&one.Users, req.Users}, {&one.Accounts, req.Accounts}} {
		if list.from != nil {
			*list.to = *list.from
		}
	}
	if req.Flags != nil {
		one.Flags = *req.Flags
	}
	return api.ReservationsReply{SchemaVersion: api.SchemaVersion, Reservations: []api.Reservation{*one}}, nil
}

func (c *Controller) unreserve(r *http.Request) (any, error) {
	at := c.reservation(r.PathValue("name"))
	if at < 0 {
		return nil, api.Errorf(api.CodeNotFound, "no reservation %q", r.PathValue("name"))
	}
	c.Reserved = slices.Delete(c.Reserved, at, at+1)
	return struct{}{}, nil
}
