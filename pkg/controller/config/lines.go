package config

import (
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// keyLines finds the line of each key of a TOML file that parses. Keys are in lower case,
// as viper gives them; those inside arrays of tables read "partition[0].nodes", and
// "partition[0]" is the header's own line.
func keyLines(data []byte) map[string]int {
	lines := map[string]int{}
	count := map[string]int{}
	var p unstable.Parser
	p.Reset(data)
	prefix := ""
	for p.NextExpression() {
		e := p.Expression()
		name, line := keyOf(&p, e)
		switch e.Kind {
		case unstable.ArrayTable:
			prefix = fmt.Sprintf("%s[%d].", name, count[name])
			count[name]++
			note(lines, name, line)
			note(lines, strings.TrimSuffix(prefix, "."), line)
		case unstable.Table:
			prefix = name + "."
			first, _, _ := strings.Cut(name, ".")
			note(lines, first, line)
			note(lines, name, line)
		case unstable.KeyValue:
			note(lines, prefix+name, line)
			first, _, _ := strings.Cut(name, ".")
			note(lines, prefix+first, line)
		}
	}
	return lines
}

// twice is the first key, or table, of a file that stands there a second time; 0: none does.
func twice(data []byte) (key string, line int) {
	seen, count := map[string]bool{}, map[string]int{}
	var p unstable.Parser
	p.Reset(data)
	prefix := ""
	for p.NextExpression() {
		e := p.Expression()
		name, line := keyOf(&p, e)
		whole := name
		switch e.Kind {
		case unstable.ArrayTable:
			prefix = fmt.Sprintf("%s[%d].", name, count[name])
			count[name]++
			continue
		case unstable.Table:
			prefix = name + "."
		case unstable.KeyValue:
			whole = prefix + name
		default:
			continue
		}
		if seen[whole] {
			return name, line
		}
		seen[whole] = true
	}
	return "", 0
}

// note keeps the first line of a key.
func note(lines map[string]int, key string, line int) {
	if _, ok := lines[key]; !ok {
		lines[key] = line
	}
}

func keyOf(p *unstable.Parser, e *unstable.Node) (name string, line int) {
	var parts []string
	for it := e.Key(); it.Next(); {
		k := it.Node()
		if line == 0 {
			line = p.Shape(k.Raw).Start.Line
		}
		parts = append(parts, strings.ToLower(string(k.Data)))
	}
	return strings.Join(parts, "."), line
}
