package api

import (
	"slices"
	"strconv"
	"strings"
)

// Pool is so many of one thing that the site has altogether, whichever nodes use it: what there is of it, or what a job asks
// for from its start to its end.
type Pool struct {
	Kind  string `json:"kind" bound:"len=32" mapstructure:"-"`
	Name  string `json:"name" bound:"len=64" mapstructure:"name"`
	Count int    `json:"count" bound:"1..1048576" mapstructure:"count"`
}

// MaxPool is how many there may be of one.
const MaxPool = 1 << 20

// PoolKey is which one it is.
type PoolKey struct{ Kind, Name string }

// Key is which one it is.
func (p *Pool) Key() PoolKey { return PoolKey{p.Kind, p.Name} }

func (k PoolKey) String() string { return k.Kind + " " + k.Name }

// PoolState is what the site has of a pool, and how much of it gangs hold.
type PoolState struct {
	Pool
	Used int `json:"used"`
}

// Free is how many are left: none where more are held than there are by now.
func (p *PoolState) Free() int { return max(0, p.Count-p.Used) }

// PoolRow is a kind of them. Whatever asks for, counts or shows pools goes over [PoolRows], so that a further kind is a row.
type PoolRow struct {
	Kind   string // what one is called, and its table in the configuration
	Option string // that asks for some: --OPTION=NAME:N,...
	Word   string // of who waits for some, as Slurm spells it
	Env    string // Slurm's variable that tells a script what it asked for
	Of     func(*Settings) []Pool
}

// Pools are what the site has, of all kinds.
func (s *Settings) Pools() []Pool {
	var out []Pool
	for i := range PoolRows {
		for _, p := range PoolRows[i].Of(s) {
			p.Kind = PoolRows[i].Kind
			out = append(out, p)
		}
	}
	return out
}

// PoolRowOf is the row of a kind, nil for one that is none.
func PoolRowOf(kind string) *PoolRow {
	if i := slices.IndexFunc(PoolRows, func(r PoolRow) bool { return r.Kind == kind }); i >= 0 {
		return &PoolRows[i]
	}
	return nil
}

// AddPools is what two of them ask for together.
func AddPools(a, b []Pool) []Pool {
	out := slices.Clone(a)
	for _, p := range b {
		if i := slices.IndexFunc(out, func(o Pool) bool { return o.Key() == p.Key() }); i >= 0 {
			out[i].Count += p.Count
		} else {
			out = append(out, p)
		}
	}
	return out
}

// PoolText is what of a kind is asked for, as Slurm writes it: matlab:2,ansys:1.
func PoolText(pools []Pool, kind string) string {
	var out []string
	for i := range pools {
		if pools[i].Kind == kind {
			out = append(out, pools[i].Name+":"+strconv.Itoa(pools[i].Count))
		}
	}
	return strings.Join(out, ",")
}

// PoolVariables are what Slurm's scripts are told of pools, as NAME=value.
func PoolVariables(pools []Pool) (out []string) {
	for i := range PoolRows {
		if text := PoolText(pools, PoolRows[i].Kind); text != "" {
			out = append(out, PoolRows[i].Env+"="+text)
		}
	}
	return out
}

// PoolRows are the kinds.
var PoolRows = []PoolRow{
	{Kind: "licence", Option: "licenses", Word: "Licenses", Env: "SLURM_JOB_LICENSES", Of: func(s *Settings) []Pool { return s.Licences }},
}

// PoolNameOK reports whether a pool can be called so: letters, digits and . _ - @ /, a letter or digit first.
func PoolNameOK(name string) bool {
	if name == "" || len(name) > 64 || strings.ContainsRune("._-@/", rune(name[0])) {
		return false
	}
	return !strings.ContainsFunc(name, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("._-@/", c)
	})
}
