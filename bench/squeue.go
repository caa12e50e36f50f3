package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// queuedJobs is how many jobs are in the queue, each submitted by itself: an array is one
// record to Slurm, which its client writes out.
const queuedJobs = 10000

// squeueByName times squeue, which is gqueue by that name in gangd: about one job after the
// other, as scripts that wait do, and about the whole queue.
func squeueByName(m *meter) ([]figure, error) {
	squeue, err := m.byName("squeue", "gqueue")
	if err != nil {
		return nil, err
	}
	path, err := m.script("sleep 600")
	if err != nil {
		return nil, err
	}
	first, err := m.command(slices.Insert(m.sys.submit(job{script: path, ranks: 1}), 1, "--hold"))
	if err != nil {
		return nil, err
	}
	id, err := strconv.Atoi(first)
	if err != nil {
		return nil, err
	}
	args := slices.Insert(m.sys.submit(job{script: path, ranks: 1}), 1, "--hold")
	if _, err := eightClients(queuedJobs/8, func() error { _, err := m.command(args); return err }); err != nil {
		return nil, err
	}
	const asked = 1000
	t := time.Now()
	for i := range asked {
		if _, err := m.command([]string{squeue, "-h", "-j", strconv.Itoa(id + i)}); err != nil {
			return nil, err
		}
	}
	one := ms(time.Since(t)) / asked
	var all []float64
	for range 10 {
		t := time.Now()
		out, err := m.command([]string{squeue, "-h"})
		if err != nil {
			return nil, err
		}
		if n := strings.Count(out, "\n"); n < queuedJobs-1 {
			return nil, fmt.Errorf("squeue shows %d of %d jobs", n+1, queuedJobs)
		}
		all = append(all, ms(time.Since(t)))
	}
	if err := m.cancelAll(); err != nil {
		return nil, err
	}
	return []figure{
		{name: "squeue -j, mean of 1,000 in a loop over 10,000 jobs", value: one, unit: "ms", need: aClient},
		{name: "squeue of 10,000 jobs", value: median(all), unit: "ms", need: aClient},
	}, nil
}

// byName is a command of Slurm's as the system under measurement has it.
func (m *meter) byName(name, program string) (string, error) {
	g, ok := m.sys.(*gangdSystem)
	if !ok {
		return name, nil
	}
	link := filepath.Join(m.dir, name)
	err := os.Symlink(filepath.Join(g.bin, program), link)
	if os.IsExist(err) {
		err = nil
	}
	return link, err
}
