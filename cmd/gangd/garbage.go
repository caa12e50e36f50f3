package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// How much garbage may gather beside what is in use, before it is collected: enough that a busy controller
// with little in memory does not collect all the time, and not as much again where there is a lot.
const (
	garbageBytes   = 32 << 20
	garbageLeast   = 40  // percent of what is in use
	garbageMost    = 200 // the same
	garbageByGo    = 100
	garbageSetting = "GOGC" // Go's own, in the environment: who set it knows better
)

// paceGarbage bounds garbage, anew after each collection.
func paceGarbage() {
	if os.Getenv(garbageSetting) == "" {
		paceNext(garbageByGo)
	}
}

// paceNext waits for the end of a collection.
func paceNext(percent int) {
	type collected struct{ *int }
	runtime.AddCleanup(&collected{new(int)}, func(percent int) {
		in := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}}
		metrics.Read(in)
		if want := garbagePercent(in[0].Value.Uint64() + in[1].Value.Uint64()); want != percent {
			debug.SetGCPercent(want)
			percent = want
		}
		paceNext(percent)
	}, percent)
}

// garbagePercent is how much garbage may gather, in percent of what is in use.
func garbagePercent(used uint64) int {
	percent := garbageMost
	if used > 0 {
		percent = int(min(garbageMost, garbageBytes*100/used))
	}
	return max(garbageLeast, percent/10*10)
}
