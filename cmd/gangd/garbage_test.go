package main

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

func TestGarbageBesideWhatIsUsed(t *testing.T) {
	for used, want := range map[uint64]int{0: 200, 10 << 20: 200, 20 << 20: 160, 32 << 20: 100, 64 << 20: 50, 1 << 30: 40} {
		if got := garbagePercent(used); got != want {
			t.Errorf("%d MB in use: %d %% of garbage, want %d", used>>20, got, want)
		}
	}
}

// The bound follows what is in use, collection after collection.
func TestGarbageIsPaced(t *testing.T) {
	t.Setenv(garbageSetting, "")
	before := debug.SetGCPercent(garbageByGo)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	paceGarbage()
	held := make([][]byte, 0, 300)
	for range 300 {
		held = append(held, make([]byte, 1<<20))
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		runtime.GC()
		percent := debug.SetGCPercent(garbageByGo)
		debug.SetGCPercent(percent)
		if percent == garbageLeast {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("with %d MB in use %d %% of garbage may gather, want %d", len(held), percent, garbageLeast)
		}
	}
	runtime.KeepAlive(held)
}
