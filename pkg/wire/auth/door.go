package auth

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync"
)

// Door bounds the connections of a listener that whoever comes may reach, as the page. Somebody who has shown who he is
// keeps his connection, within a share of his own. Of strangers an address has a share, and who is there for
// longest without having said who he is goes first, so that nobody who comes is kept out by those who wait.
type Door struct {
	most, each int // of all; of an address, or of a user

	mu        sync.Mutex
	open      map[net.Conn]*visitor
	strangers *list.List // of *visitor, the oldest first
	from      map[netip.Addr]*list.List
	users     map[uint32]*list.List
}

type visitor struct {
	conn net.Conn
	at   netip.Addr
	all  *list.Element // in strangers; nil: he is known
	own  *list.Element // in those of his address, or of his user
	of   *list.List
	drop func() // takes an empty list out of its map
}

// shareOfOne is the part of a door's connections that one address, or one user, may hold.
const shareOfOne = 4

// NewDoor is one of so many connections, or of as many as the process has files for beside its work.
func NewDoor(most int) *Door {
	return newDoor(min(most, newConns().anonymous))
}

func newDoor(most int) *Door {
	most = max(most, shareOfOne)
	return &Door{most: most, each: most / shareOfOne, open: map[net.Conn]*visitor{}, strangers: list.New(),
		from: map[netip.Addr]*list.List{}, users: map[uint32]*list.List{}}
}

// ConnContext is for [http.Server.ConnContext]: it lets [Door.Known] find the connection of a request.
func (d *Door) ConnContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// ConnState is for [http.Server.ConnState].
func (d *Door) ConnState(c net.Conn, state http.ConnState) {
	var out net.Conn
	switch state {
	case http.StateNew:
		out = d.enter(c)
	case http.StateClosed, http.StateHijacked:
		d.leave(c)
	}
	if out != nil {
		_ = bare(out).Close()
	}
}

// enter counts a connection, and gives the one that has to go for it.
func (d *Door) enter(c net.Conn) (out net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	v := &visitor{conn: c, at: PeerNetwork(c.RemoteAddr().String())}
	d.open[c] = v
	v.all = d.strangers.PushBack(v)
	join(d.from, v.at, v)
	switch {
	case v.of.Len() > d.each:
		return d.dismiss(v.of.Front().Value.(*visitor))
	case len(d.open) > d.most:
		return d.dismiss(d.strangers.Front().Value.(*visitor))
	}
	return nil
}

// Known says that the caller of a request has shown who he is. Where he has too many connections his oldest goes.
func (d *Door) Known(ctx context.Context, uid uint32) {
	if d == nil {
		return
	}
	c := connOf(ctx)
	d.mu.Lock()
	v := d.open[c]
	if c == nil || v == nil || v.all == nil {
		d.mu.Unlock()
		return
	}
	d.strangers.Remove(v.all)
	v.all = nil
	v.part()
	join(d.users, uid, v)
	var out net.Conn
	if v.of.Len() > d.each {
		out = d.dismiss(v.of.Front().Value.(*visitor))
	}
	d.mu.Unlock()
	if out != nil {
		_ = bare(out).Close()
	}
}

func (d *Door) leave(c net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if v := d.open[c]; v != nil {
		d.dismiss(v)
	}
}

// dismiss forgets a connection, and gives it to be closed. d.mu is held.
func (d *Door) dismiss(v *visitor) net.Conn {
	delete(d.open, v.conn)
	if v.all != nil {
		d.strangers.Remove(v.all)
	}
	v.part()
	return v.conn
}

func join[K comparable](lists map[K]*list.List, k K, v *visitor) {
	if lists[k] == nil {
		lists[k] = list.New()
	}
	v.of = lists[k]
	v.own = v.of.PushBack(v)
	v.drop = func() { delete(lists, k) }
}

func (v *visitor) part() {
	if v.of.Remove(v.own); v.of.Len() == 0 {
		v.drop()
	}
}

// PeerNetwork is what stands for one peer of an address HOST:PORT: of IPv6 its network, of which a host has all
// addresses.
func PeerNetwork(address string) netip.Addr {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return netip.Addr{}
	}
	ip := ap.Addr().Unmap().WithZone("")
	if ip.Is6() {
		if p, err := ip.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return ip
}
