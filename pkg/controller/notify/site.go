package notify

import (
	"fmt"
	"net/mail"
	"slices"
	"strings"

	"gangd/pkg/api"
)

// Site is where the site lets gangd deliver to. The zero value: nowhere.
type Site struct {
	Mail    *Mail // nil: no mail is sent
	Targets []*Webhook
	// Rate is how many deliveries a user may have in an hour for long, Burst how many at once on top.
	Rate, Burst int
}

func (s *Site) target(name string) *Webhook {
	if i := slices.IndexFunc(s.Targets, func(t *Webhook) bool { return t.Name == name }); i >= 0 {
		return s.Targets[i]
	}
	return nil
}

// Resolve holds what a user asked for against the site: it fills in addresses, refuses what the site does not
// deliver to, and leaves out, with a warning, what nothing is sent for.
func (s *Site) Resolve(asked []api.Notify, user string) (kept []api.Notify, warnings []string, err error) {
	stageOut := false
	for _, n := range asked {
		for _, t := range n.Types {
			if !slices.Contains(api.NotifyTypes, t) {
				return nil, nil, &api.Error{Code: api.CodeInvalid, Message: fmt.Sprintf("notify: there is no kind %q", t), Hint: "kinds are " + kinds()}
			}
		}
		// STAGE_OUT alone is never sent; as part of ALL nobody asked for it by name.
		if n.Wants(api.NotifyStageOut) && !slices.ContainsFunc(api.NotifyAll[:5], n.Wants) {
			stageOut = true
		}
		switch {
		case n.Target != "" && n.To != "":
			return nil, nil, api.Errorf(api.CodeInvalid, "notify: target and to exclude each other")
		case n.Target != "":
			if s.target(n.Target) == nil {
				return nil, nil, s.noTarget(n.Target)
			}
		case s.Mail == nil:
			warnings = append(warnings, "--mail-type has no effect: the site has no mail server, which an administrator would name; wait with "+
				"gsubmit --wait, or follow gctl events --follow")
			continue
		default:
			if n.To, err = s.Mail.address(n.To, user); err != nil {
				return nil, nil, err
			}
		}
		if len(n.Types) > 0 {
			kept = append(kept, n)
		}
	}
	if stageOut {
		warnings = append(warnings, "STAGE_OUT never happens: there are no burst buffers")
	}
	return kept, slices.Compact(warnings), nil
}

func kinds() string {
	var out []string
	for _, t := range api.NotifyTypes {
		out = append(out, string(t))
	}
	return strings.Join(out, ", ")
}

func (s *Site) noTarget(name string) error {
	e := &api.Error{Code: api.CodeInvalid, Message: fmt.Sprintf("notify: the site has no target %q", name),
		Hint: "it has none; mail is asked for with --mail-type"}
	var names []string
	for _, t := range s.Targets {
		names = append(names, t.Name)
	}
	if len(names) > 0 {
		e.Hint = "targets here: " + strings.Join(names, ", ")
	}
	return e
}

// address is where mail for a user goes; empty: his own.
func (m *Mail) address(to, user string) (string, error) {
	if to == "" {
		to = user
	}
	if !strings.Contains(to, "@") {
		if m.Domain == "" {
			return "", &api.Error{Code: api.CodeInvalid, Message: fmt.Sprintf("notify: %q is no mail address, and the site names no mail domain "+
				"for its users", to), Hint: "give a whole address with --mail-user"}
		}
		to += "@" + m.Domain
	}
	parsed, err := mail.ParseAddress(to)
	if err != nil || parsed.Address != to || strings.ContainsFunc(to, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return "", &api.Error{Code: api.CodeInvalid, Message: fmt.Sprintf("notify: %q is no mail address", to),
			Hint: "write --mail-user=NAME@DOMAIN"}
	}
	domain := strings.ToLower(to[strings.LastIndexByte(to, '@')+1:])
	for _, d := range m.Domains {
		d = strings.ToLower(d)
		if d == "*" || d == domain || strings.HasPrefix(d, ".") && strings.HasSuffix(domain, d) {
			return to, nil
		}
	}
	return "", &api.Error{Code: api.CodeInvalid, Message: fmt.Sprintf("notify: the site sends no mail to %s", domain),
		Hint: "domains here: " + strings.Join(m.Domains, ", ") + "; leave --mail-user out for your own address"}
}
