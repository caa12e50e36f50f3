package gcron

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cron"
	"gangd/pkg/core/script"
	"gangd/pkg/slurm/sbatch"
	"gangd/pkg/wire/people"
)

// ask is what a table asks for. With mistakes it is nil; warnings are of lines too.
func ask(text string, owner *people.User, host string, now time.Time) (req *api.CrontabRequest, warnings []string,
	mistakes []cron.Mistake) {
	entries, mistakes := cron.Table(text)
	req = &api.CrontabRequest{Text: text}
	for i := range entries {
		e := &entries[i]
		spec, warn, err := specOf(e, owner, now)
		if err != nil {
			mistakes = append(mistakes, mistake(e, err))
			continue
		}
		spec.SubmitHost = host
		warnings = append(warnings, warn...)
		req.Jobs = append(req.Jobs, api.CronJob{First: e.First, Last: e.Last, Spec: *spec})
	}
	if mistakes != nil {
		slices.SortFunc(mistakes, func(a, b cron.Mistake) int { return a.Line - b.Line })
		return nil, warnings, mistakes
	}
	return req, warnings, nil
}

// mistake says what is wrong with an entry, by the line that says it.
func mistake(e *cron.Entry, err error) cron.Mistake {
	m := cron.Mistake{First: e.First, Last: e.Last, Line: e.Last, Text: err.Error()}
	var bad *script.Error
	if !errors.As(err, &bad) {
		return m
	}
	if bad.Pos.Line > 0 {
		m.Line = bad.Pos.Line
	}
	where := bad.Pos
	bad.Pos = script.Pos{}
	m.Text = bad.Error()
	bad.Pos = where
	return m
}

// file is what warnings call a table.
const file = "line"

// specOf reads the options of a line. The environment is that of a cron: what the caller has set is not of the table.
func specOf(e *cron.Entry, owner *people.User, now time.Time) (*api.Spec, []string, error) {
	settings, warn, err := script.Directives(file, []byte(e.Options))
	if err != nil {
		return nil, nil, err
	}
	req, more, err := script.Build(settings, now)
	if err != nil {
		return nil, nil, err
	}
	var said []string
	for _, w := range slices.Concat(warn, more) {
		said = append(said, w.String())
	}
	if req.Array != nil {
		return nil, nil, fmt.Errorf("an array does not go with a line of a cron table, which is due again and again")
	}
	s := &req.Spec
	name, _, _ := strings.Cut(e.Command, " ")
	if slices.ContainsFunc(settings, func(f script.Setting) bool { return f.Source == script.FromGANG }) {
		s.ScriptName = e.Command
	} else {
		sbatch.Shape(req, e.Command)
	}
	if s.Name == "" {
		s.Name = name
	}
	s.Script, s.Umask = []byte(e.Script()), 0o022
	if s.WorkDir = req.Chdir; s.WorkDir == "" {
		s.WorkDir = owner.Home
	}
	asked := req.Export
	if asked == "" {
		asked = "ALL"
	}
	export, err := script.ParseExport(asked)
	if err != nil {
		return nil, nil, err
	}
	env, _ := export.Environ(environ(e, owner))
	s.Env = env
	return s, said, nil
}

// environ is what a cron gives, and what the table sets.
func environ(e *cron.Entry, owner *people.User) []string {
	env := []string{"HOME=" + owner.Home, "LOGNAME=" + owner.Name, "PATH=/usr/local/bin:/usr/bin:/bin", "PWD=" + owner.Home, "SHELL=/bin/sh",
		"USER=" + owner.Name}
	for _, kv := range e.Env {
		name, _, _ := strings.Cut(kv, "=")
		env = slices.DeleteFunc(env, func(o string) bool { return strings.HasPrefix(o, name+"=") })
	}
	return append(env, e.Env...)
}
