package grun

import (
	"gangd/pkg/program"
)

func (r *run) outside() error  { return program.Usagef("outside") }
func (r *run) allocate() error { return program.Usagef("alloc") }
