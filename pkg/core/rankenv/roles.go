package rankenv

import "strings"

// rolePeers begins the variables with the addresses of a role's ranks.
const rolePeers = "GANG_ROLE_PEERS_"

// rolePeersName is the variable with the addresses of the ranks of a role.
func rolePeersName(role string) string {
	return rolePeers + strings.ToUpper(strings.ReplaceAll(role, "-", "_"))
}

// roles names the roles of the gang and where the ranks of each are: who waits for the
// coordinator need not know how ranks are numbered.
func (m *Member) roles(e *env, l *layout) {
	if len(m.Spec.Roles) == 0 {
		return
	}
	var names []string
	first, left := 0, maxPeersBytes
	for _, r := range m.Spec.Roles {
		names = append(names, r.Name)
		peers := make([]string, 0, r.Count)
		for i := first; i < min(first+r.Count, len(m.Body.Ranks)); i++ {
			peers = append(peers, m.Body.Nodes[m.Body.Ranks[i].Node].Address)
		}
		first += r.Count
		// All of them together are bounded: exec counts the sum too.
		if v := strings.Join(peers, ","); len(v) <= left {
			left -= len(v)
			e.set(rolePeersName(r.Name), v)
		}
	}
	e.set("GANG_ROLES", strings.Join(names, ","))
}
