package document

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Parser is the data parser that a document is written by: 38 stands for v0.0.38. From 40 on a number
// says whether it is one, states and flags are lists, and the envelope comes behind the list.
type Parser int

// The oldest parser, and the first of those that are plug-ins of Slurm's and can be chosen.
const (
	V38 Parser = 38
	V40 Parser = 40
	V41 Parser = 41
	V42 Parser = 42
)

func (p Parser) String() string { return "v0.0." + strconv.Itoa(int(p)) }

// Style is what a document is written for.
type Style struct {
	Parser  Parser
	Release string // of the Slurm whose words are spoken, 23.11.11
	Cluster string
	Command []string // its words
	YAML    bool
}

// Key is the name of a member that only some parsers write; zero bounds are open.
type Key struct {
	Name        string
	Since, Last Parser
}

// Since is a key that parsers from p on write, until one that parsers before p write.
func Since(p Parser, name string) Key { return Key{Name: name, Since: p} }

// Until is a key that parsers before p write.
func Until(p Parser, name string) Key { return Key{Name: name, Last: p - 1} }

// Number is a number that may not be set: nil is none.
type Number struct{ Value any }

// Infinite is the number of what has no limit.
type Infinite struct{}

// At is a moment; zero: not set.
type At time.Time

// Flags is states or flags; the first alone was a text before parser 40.
type Flags []string

// List is names; a text with commas before parser 40.
type List []string

// Exit is how a process ended: the code, or the signal if that is not 0.
type Exit struct {
	Code, Signal int
	Pending      bool
	// Name is the signal's.
	Name string
	// Plain is what parsers before 40 write in its place.
	Plain any
}

// Write writes o as the style has it.
func (s *Style) Write(w interface{ Write([]byte) (int, error) }, o Object) error {
	return write(w, s.Parser.resolve(o).(Object), s.YAML)
}

// Envelope is the document of a command: the list by its kind, and what made it. updated is when what it
// shows changed last; some lists do not say.
func (s *Style) Envelope(kind string, list []Object, updated time.Time) Object {
	items := make([]any, len(list))
	for i, o := range list {
		items[i] = o
	}
	return s.Around(Object{{kind, items}}, updated)
}

// Around puts the envelope of the commands that read the controller around members of a document.
func (s *Style) Around(members Object, updated time.Time) Object {
	if s.Parser < V40 {
		return append(Object{{"meta", s.plain("openapi/v0.0.38", "Slurm OpenAPI v0.0.38")}, {"errors", []any{}}}, members...)
	}
	if !updated.IsZero() {
		if members[0].Key == "jobs" {
			members = append(members, Member{"last_backfill", At(updated)})
		}
		members = append(members, Member{"last_update", At(updated)})
	}
	return append(members, Member{"meta", s.meta()}, Member{"errors", []any{}}, Member{"warnings", []any{}})
}

// plain is the meta of v0.0.38.
func (s *Style) plain(kind, name string) Object {
	major, minor, micro := s.version()
	return Of("plugin", Of("type", kind, "name", name),
		"Slurm", Of("version", Of("major", major, "micro", micro, "minor", minor), "release", s.Release))
}

func (s *Style) version() (major, minor, micro int) {
	_, _ = fmt.Sscanf(s.Release, "%d.%d.%d", &major, &minor, &micro) // a constant of ours
	return major, minor, micro
}

func (s *Style) meta() Object {
	v := strings.SplitN(s.Release+"..", ".", 4)
	return Of(
		"plugin", Of("type", "", "name", "", "data_parser", "data_parser/"+s.Parser.String(), "accounting_storage", ""),
		"client", Of("source", "", "user", "", "group", ""),
		"command", Texts(s.Command),
		"slurm", Of("version", Of("major", v[0], "micro", v[2], "minor", v[1]), "release", s.Release, "cluster", s.Cluster),
	)
}

// Accounting is the envelope of the commands that read Slurm's database.
func (s *Style) Accounting(kind string, list []any, more ...Member) Object {
	if s.Parser < V40 {
		meta := append(s.plain("openapi/dbv0.0.38", "Slurm OpenAPI DB v0.0.38"), more...)
		return Object{{"meta", meta}, {"errors", []any{}}, {kind, list}}
	}
	return Object{{kind, list}, {"meta", append(s.meta(), more...)}, {"errors", []any{}}, {"warnings", []any{}}}
}

// resolve makes plain values of v, as the parser writes them.
func (p Parser) resolve(v any) any {
	switch v := v.(type) {
	case Object:
		for i := range v {
			v[i].Value = p.resolve(v[i].Value)
		}
		return v
	case []any:
		for i := range v {
			v[i] = p.resolve(v[i])
		}
		return v
	case Number:
		return p.number(v.Value, false)
	case Infinite:
		return p.number(nil, true)
	case At:
		return p.number(Time(time.Time(v)), false)
	case Flags:
		if p < V40 {
			return first(v)
		}
		return Texts(v)
	case List:
		if p < V40 {
			return strings.Join(v, ",")
		}
		return Texts(v)
	case Exit:
		return p.resolve(p.exit(v))
	}
	return v
}

func first(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return words[0]
}

func (p Parser) number(n any, infinite bool) any {
	if p < V40 {
		return n
	}
	if n == nil {
		return Of("set", false, "infinite", infinite, "number", 0)
	}
	return Of("set", true, "infinite", false, "number", n)
}

func (p Parser) exit(e Exit) any {
	if p < V40 {
		return e.Plain
	}
	status, code, signal := "SUCCESS", any(e.Code), any(nil)
	switch {
	case e.Pending:
		status, code = "PENDING", nil
	case e.Signal != 0:
		status, code, signal = "SIGNALED", nil, e.Signal
	case e.Code != 0:
		status = "ERROR"
	}
	return Of("status", Flags{status}, "return_code", Number{code}, "signal", Of("id", Number{signal}, "name", e.Name))
}

// Members makes the object that the parser writes of keys (texts, or a [Key]) and values that
// follow each other.
func (p Parser) Members(pairs ...any) Object {
	o := make(Object, 0, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		key, always := pairs[i].(string)
		if !always {
			k := pairs[i].(Key)
			if p < k.Since || k.Last != 0 && p > k.Last {
				continue
			}
			key = k.Name
		}
		o = append(o, Member{key, pairs[i+1]})
	}
	return o
}
