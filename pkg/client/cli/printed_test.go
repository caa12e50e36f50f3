package cli

import (
	"bytes"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"gangd/pkg/api"
	"gangd/pkg/core/table/used"
	"gangd/pkg/lab/sitetest"
)

// obeyed is what a terminal would do something about in a text, "" for nothing. Colours are ours.
func obeyed(text string) string {
	for line := range strings.Lines(uncoloured(text)) {
		if strings.HasPrefix(strings.TrimSpace(line), "FAKE=1") {
			return line
		}
		if strings.ContainsFunc(strings.TrimSuffix(line, "\n"), func(r rune) bool { return unicode.IsControl(r) && r != '\t' || unicode.Is(unicode.Bidi_Control, r) }) {
			return line
		}
	}
	return ""
}

const hostile = "\x1b]0;pwn\a\x1b[2J\nFAKE=1\r\u202egnp"

// fillHostile writes into every text of a record what a stranger could have had written there, and one element into every
// empty list, so that a field that is new is in it.
func fillHostile(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.String:
		if v.Type() == reflect.TypeFor[string]() {
			v.SetString(hostile)
		}
	case reflect.Pointer:
		if v.IsNil() && depth < 4 && v.Type().Elem() != reflect.TypeFor[time.Time]() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		if !v.IsNil() {
			fillHostile(v.Elem(), depth+1)
		}
	case reflect.Slice:
		if v.Len() == 0 && depth < 4 && v.Type().Elem().Kind() != reflect.Uint8 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		}
		for i := range v.Len() {
			fillHostile(v.Index(i), depth+1)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fillHostile(v.Field(i), depth+1)
			}
		}
	}
}

// TestNothingPrintedIsObeyed: what somebody has written of his job, and what a node says, reaches no terminal as a code,
// turns no text around, and begins no line.
func TestNothingPrintedIsObeyed(t *testing.T) {
	for _, state := range []api.JobState{api.JobPending, api.JobRunning, api.JobFailed} {
		d := &api.JobDetail{Attempts: []api.Attempt{{}}}
		fillHostile(reflect.ValueOf(d).Elem(), 0)
		d.Job.State, d.Job.Component, d.Job.Components, d.Job.Roles = state, nil, nil, nil
		ev := api.Event{}
		fillHostile(reflect.ValueOf(&ev).Elem(), 0)
		for name, write := range map[string]func(s *screen) error{
			"gctl show job": func(s *screen) error { return writeStory(s, d, []api.Event{ev}) },
			"gctl events":   func(s *screen) error { return writeEvents(s, []api.Event{ev}, time.Time{}, nil) },
			"gacct -e":      func(s *screen) error { used.Write(s.w, &d.Job, &d.Attempts[0], time.Now(), false); return nil },
		} {
			for _, colour := range []bool{false, true} {
				var b bytes.Buffer
				if err := write(&screen{w: &b, terminal: colour, colour: colour, width: 120}); err != nil {
					t.Fatal(err)
				}
				if line := obeyed(b.String()); line != "" || b.Len() == 0 {
					t.Errorf("%s of a job that is %s: %q", name, state, line)
				}
			}
		}
	}
	for _, width := range []int{0, 1, 40} {
		if got := fit(hostile, width); obeyed(got) != "" {
			t.Errorf("gtop, %d columns: %q", width, got)
		}
	}
	s := sitetest.Small(t)
	id := strconv.FormatInt(s.Submit(sitetest.Ada, api.Spec{Name: "x\u202egnp\u2066", Size: 1, Launch: api.LaunchBatch, CPUsPerRank: 1, WorkDir: "/tmp/" + hostile, Output: "/tmp/o" + hostile,
		AsAsked: api.AsAsked{Comment: hostile}, ScriptName: hostile, Script: []byte("#!/bin/sh\n"), Account: "a\u202eb"}, nil), 10)
	s.NodeDo("drain", "n3", hostile)
	for _, line := range []string{"gqueue", "gqueue -l", "gqueue --why " + id, "gqueue -j " + id, "gctl show job " + id, "gctl show node", "gctl events " + id, "gctl show partition",
		"ginfo", "ginfo --cards", "ginfo -R", "gacct -j " + id, "gacct -a"} {
		words := strings.Fields(line)
		out, errs, _ := run(t, s, command(words[0]), words[1:]...)
		if bad := obeyed(out + errs); bad != "" {
			t.Errorf("%s: %q", line, bad)
		}
	}
}
