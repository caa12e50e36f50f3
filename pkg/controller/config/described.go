package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"gangd/pkg/api"
)

// mark says when a change of a key counts.
type mark uint8

// The marks: see [api.ChangeLive] and those beside it.
const (
	live mark = iota
	nextJob
	restart
)

func (m mark) String() string {
	return [...]string{api.ChangeLive, api.ChangeNextJob, api.ChangeRestart}[m]
}

// Value is one key of a configuration as people are shown it. Two configurations differ where their values do.
type Value struct {
	Key   string `json:"key"`
	Shown string `json:"shown"`
	// Sum is of the value and of what was read from a file that it names, secrets among it, which nobody is shown.
	Sum   string `json:"sum"`
	When  string `json:"when"`
	Table bool   `json:"table,omitempty"` // it stands for a whole table: partition[gpu]
	Order bool   `json:"order,omitempty"` // it is the order of the tables of a name
	place string // key of its line
}

// secrets are keys that may hold what lets others write somewhere, or read.
var secrets = []string{"database", "url"}

const notShown = "(not shown)"

// described are the values of a configuration in the order of the table.
func (t *table) described(of any, contents map[string]any) []Value {
	var out []Value
	fields := valuesOf(of)
	for i := range t.rows {
		out = append(out, t.rows[i].described("", "", fields, contents))
	}
	for _, name := range t.listNames() {
		l := t.lists[name]
		items := l.items(of)
		var order []string
		for i, item := range items {
			fields := valuesOf(item)
			key, place := fmt.Sprintf("%s[%v]", name, fields["name"]), fmt.Sprintf("%s[%d]", name, i)
			order = append(order, fmt.Sprint(fields["name"]))
			var keys []Value
			var set []string
			for k := range l.rows {
				v := l.rows[k].described(key+".", place+".", fields, contents)
				keys = append(keys, v)
				if f := reflect.ValueOf(fields[l.rows[k].key]); f.IsValid() && !f.IsZero() && l.rows[k].key != "name" {
					set = append(set, l.rows[k].key+" = "+v.Shown)
				}
			}
			whole := "there"
			if set != nil {
				whole = strings.Join(set, ", ")
			}
			out = append(out, Value{Key: key, Shown: whole, Table: true, When: api.ChangeLive, place: place})
			out = append(out, keys...)
		}
		out = append(out, Value{Key: name, Shown: strings.Join(order, ", "), Sum: strings.Join(order, ","), When: api.ChangeLive,
			Order: true, place: name})
	}
	return out
}

func (t *table) listNames() (names []string) {
	for name := range t.lists {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (r *row) described(prefix, place string, fields, contents map[string]any) Value {
	var value any // nil: a pointer to none
	if f := reflect.ValueOf(fields[r.key]); f.Kind() != reflect.Pointer || !f.IsNil() {
		value = pointedTo(fields[r.key])
	}
	v := Value{Key: prefix + r.key, When: r.when.String(), Shown: shown(reflect.ValueOf(value)), place: place + r.key}
	sum := sha256.New()
	fmt.Fprintf(sum, "%v", value)
	if more, ok := contents[v.Key]; ok {
		fmt.Fprintf(sum, "\x00%v", more)
	}
	v.Sum = hex.EncodeToString(sum.Sum(nil)[:8])
	if slices.Contains(secrets, r.key) && v.Shown != "none" {
		v.Shown = notShown
	}
	return v
}

// shown writes a value as people read it.
func shown(f reflect.Value) string {
	if !f.IsValid() {
		return "none"
	}
	switch v := f.Interface().(type) {
	case time.Duration:
		switch {
		case v == 0:
			return "off"
		case v%(24*time.Hour) == 0:
			return fmt.Sprintf("%dd", v/(24*time.Hour))
		case v%time.Hour == 0:
			return strings.TrimSuffix(v.String(), "0m0s")
		case v%time.Minute == 0:
			return strings.TrimSuffix(v.String(), "0s")
		}
	case int64:
		for shift, unit := 40, 0; shift > 0; shift, unit = shift-10, unit+1 {
			if v > 0 && v%(1<<shift) == 0 {
				return fmt.Sprintf("%d%s", v>>shift, [...]string{"TiB", "GiB", "MiB", "KiB"}[unit])
			}
		}
	case []string:
		if len(v) == 0 {
			return "none"
		}
		return strings.Join(v, ", ")
	case string:
		if v == "" {
			return "none"
		}
	}
	if f.Kind() == reflect.String && f.Len() == 0 {
		return "none"
	}
	return fmt.Sprint(f.Interface())
}

// Values are those of gangd's configuration.
func (c *Controller) Values() []Value {
	contents := map[string]any{"topology_file": c.Switches, "mail_password_file": c.MailPassword}
	said := *c
	said.Webhooks = slices.Clone(c.Webhooks)
	for i := range said.Webhooks {
		h := &said.Webhooks[i]
		contents["notify["+h.Name+"].secret_file"] = h.Secret
		if h.URLFile != "" { // where its URL is from
			contents["notify["+h.Name+"].url_file"], h.URL = h.URL, ""
		}
	}
	return controllerTable.described(&said, contents)
}

// Values are those of gnoded's configuration.
func (n *Node) Values() []Value { return nodeTable.described(n, nil) }

// Changes are the keys in which is differs from was. at gives where a key of is stands in its file; nil: nowhere.
func Changes(was, is []Value, at func(key string) string) (out []api.ConfigChange) {
	old, now := byKey(was), byKey(is)
	add := func(key, from, to, when, place string) {
		c := api.ConfigChange{Key: key, Was: from, Is: to, When: when}
		if at != nil && place != "" {
			c.Place = at(place)
		}
		out = append(out, c)
	}
	for i := range is {
		v := &is[i]
		o, there := old[v.Key]
		switch table, _, inTable := strings.Cut(v.Key, "]."); {
		case inTable && old[table+"]"] == nil: // which is new as a whole
		case !there:
			add(v.Key, "", v.Shown, v.When, v.place)
		case v.Table || o.Sum == v.Sum:
		case v.Order && !sameNames(o.Sum, v.Sum): // of which some have come or gone, which is said of each
		case o.Shown == v.Shown:
			add(v.Key, o.Shown, v.Shown+" (its contents are others)", v.When, v.place)
		default:
			add(v.Key, o.Shown, v.Shown, v.When, v.place)
		}
	}
	for i := range was {
		if v := &was[i]; v.Table && now[v.Key] == nil {
			add(v.Key, v.Shown, "", v.When, "")
		}
	}
	return out
}

func sameNames(a, b string) bool {
	p, q := strings.Split(a, ","), strings.Split(b, ",")
	slices.Sort(p)
	slices.Sort(q)
	return slices.Equal(p, q)
}

func byKey(all []Value) map[string]*Value {
	out := make(map[string]*Value, len(all))
	for i := range all {
		out[all[i].Key] = &all[i]
	}
	return out
}
