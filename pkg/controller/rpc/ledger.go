package rpc

import (
	"net/http"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/wire/auth"
)

func (s *Server) ledger(r *http.Request, _ auth.Identity) (*api.LedgerReply, error) {
	p := r.URL.Query()
	words := func(name string) (out []string) {
		for _, v := range p[name] {
			out = append(out, strings.Split(v, ",")...)
		}
		return out
	}
	return s.Engine.Ledger(r.Context(), &api.LedgerQuery{From: p.Get("from"), To: p.Get("to"), By: words("by"), Users: words("user"),
		Accounts:   words("account"),
		Partitions: words("partition"), CardTypes: p["card_type"], Cause: words("cause")})
}
