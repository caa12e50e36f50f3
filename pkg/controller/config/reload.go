package config

import (
	"context"
	"reflect"
	"slices"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/core/finding"
)

// A reload takes all of a file or nothing: it is judged as `check` judges it, and what takes a restart stays as it is. What comes of
// both is judged once more, for a key that waits may not go with one that does not.

// Reload is what a file that was read again makes of a running configuration.
type Reload[T any] struct {
	Running *T                 // what holds from now on; nil where the file is refused
	Changes []api.ConfigChange // of it
	Restart []api.ConfigChange // what the file says otherwise, and waits for a restart
	Found   finding.List       // what is wrong, and warnings
}

// Refused reports whether the file may not be taken.
func (r *Reload[T]) Refused() bool { return r.Running == nil }

// ReloadController reads the configuration of gangd again.
func ReloadController(ctx context.Context, path string, set []string, running *Controller) *Reload[Controller] {
	c, fresh := checkController(ctx, path, set)
	return reloaded(c, controllerTable, fresh, running, func(merged *Controller, src *source) error {
		return src.problems(merged.checkTimes(src)...)
	})
}

// ReloadNode reads that of gnoded again.
func ReloadNode(ctx context.Context, path, name string, set []string, running *Node) *Reload[Node] {
	c, fresh := checkNode(ctx, path, name, set)
	return reloaded(c, nodeTable, fresh, running, func(*Node, *source) error { return nil })
}

type described interface{ Values() []Value }

// reloaded is fresh with what takes a restart as it is in running.
func reloaded[C any, T interface {
	*C
	described
}](c *checks, t *table, fresh, running T, judge func(T, *source) error) *Reload[C] {
	r := &Reload[C]{}
	if fresh != nil {
		was := running.Values()
		changed := Changes(was, fresh.Values(), c.stands)
		r.divide(changed)
		c.forgive(changed, t)
		merged := *fresh
		t.keep(&merged, running)
		if r.Restart != nil {
			if err := judge(&merged, &source{file: c.file.path, lines: c.at, set: c.set}); err != nil {
				c.refused(err)
			}
		}
		r.Running = &merged
	}
	r.Found = c.list
	if slices.ContainsFunc(r.Found, func(f api.DoctorFinding) bool { return f.Severity == api.SeverityError }) {
		r.Running, r.Changes, r.Restart = nil, nil, nil
	}
	return r
}

func (r *Reload[T]) divide(all []api.ConfigChange) {
	for _, c := range all {
		if c.When == api.ChangeRestart {
			r.Restart = append(r.Restart, c)
		} else {
			r.Changes = append(r.Changes, c)
		}
	}
}

// stands is where a key stands in the file.
func (c *checks) stands(key string) string {
	if line := c.at[key]; line > 0 {
		return c.place(key)
	}
	if table, _, ok := strings.Cut(key, "."); ok && c.at[table] > 0 {
		return c.place(table)
	}
	return ""
}

// forgive makes warnings of what is wrong on this host with keys that say what they said: the daemon runs with them, and the file is no
// worse than before.
func (c *checks) forgive(changed []api.ConfigChange, t *table) {
	moved := map[string]bool{}
	for _, ch := range changed {
		moved[ch.Key] = true
	}
	for i := range c.list {
		f := &c.list[i]
		if f.Severity == api.SeverityError && t.row(c.keys[i]) != nil && !moved[c.keys[i]] && finding.KindOf(f.ID).Of == finding.OfHost {
			f.Severity = api.SeverityWarning
		}
	}
}

// keep gives to the values that was has of the keys that take a restart.
func (t *table) keep(to, was any) {
	of, from := reflect.ValueOf(to).Elem(), reflect.ValueOf(was).Elem()
	for i := range t.rows {
		if r := &t.rows[i]; r.when == restart {
			fieldOf(of, r.key).Set(fieldOf(from, r.key))
		}
	}
}

// fieldOf is the field of a key, by the same tags by which files are decoded.
func fieldOf(v reflect.Value, key string) reflect.Value {
	for i := range v.NumField() {
		tag := v.Type().Field(i).Tag.Get("mapstructure")
		if tag == key {
			return v.Field(i)
		}
		if tag == ",squash" {
			if f := fieldOf(v.Field(i), key); f.IsValid() {
				return f
			}
		}
	}
	return reflect.Value{}
}
