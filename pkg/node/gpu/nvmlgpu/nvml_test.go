//go:build cgo

package nvmlgpu

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxa100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxb200"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh200"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"

	"gangd/pkg/api"
	"gangd/pkg/core/watchdog"
	"gangd/pkg/node/gpu"
	"gangd/pkg/node/gpu/gputest"
)

// machine is a mock server whose cards also have what go-nvml's mock leaves out.
type machine struct {
	*server.Server
	devices []*server.Device
	events  chan nvml.EventData
}

func newMachine(s *server.Server) *machine {
	m := &machine{Server: s, events: make(chan nvml.EventData)}
	s.ExtensionsFunc = symbols(nil)
	set := &mock.EventSet{
		WaitFunc: func(uint32) (nvml.EventData, nvml.Return) {
			select {
			case e := <-m.events:
				return e, nvml.SUCCESS
			case <-time.After(time.Millisecond):
				return nvml.EventData{}, nvml.ERROR_TIMEOUT
			}
		},
		FreeFunc: func() nvml.Return { return nvml.SUCCESS },
	}
	s.EventSetCreateFunc = func() (nvml.EventSet, nvml.Return) { return set, nvml.SUCCESS }
	for i, d := range s.Devices {
		m.devices = append(m.devices, d.(*server.Device))
		complete(m.devices[i], i)
	}
	return m
}

// symbols says of each function whether the library has it.
func symbols(err error) func() nvml.ExtendedInterface {
	return func() nvml.ExtendedInterface {
		return &mock.ExtendedInterface{LookupSymbolFunc: func(string) error { return err }}
	}
}

// kept is what the driver of the mock servers keeps of a card's memory, as one of an H100 does.
const kept = 480 << 20

func complete(d *server.Device, i int) {
	d.GetMemoryInfo_v2Func = func() (nvml.Memory_v2, nvml.Return) {
		return nvml.Memory_v2{Total: d.MemoryInfo.Total, Reserved: kept, Used: d.MemoryInfo.Used}, nvml.SUCCESS
	}
	d.GetMemoryInfoFunc = func() (nvml.Memory, nvml.Return) {
		return nvml.Memory{Total: d.MemoryInfo.Total, Used: d.MemoryInfo.Used + kept}, nvml.SUCCESS
	}
	d.GetPciInfoFunc = func() (nvml.PciInfo, nvml.Return) { return pci(fmt.Sprintf("00000000:%02X:00.0", i+1)), nvml.SUCCESS }
	d.GetNvLinkStateFunc = func(link int) (nvml.EnableState, nvml.Return) {
		if link < 12 {
			return nvml.FEATURE_ENABLED, nvml.SUCCESS
		}
		return nvml.FEATURE_DISABLED, nvml.ERROR_INVALID_ARGUMENT
	}
	d.GetNvLinkRemotePciInfoFunc = func(int) (nvml.PciInfo, nvml.Return) { return pci("00000000:C7:00.0"), nvml.SUCCESS } // a switch
	d.GetUtilizationRatesFunc = func() (nvml.Utilization, nvml.Return) { return nvml.Utilization{Gpu: 97, Memory: 30}, nvml.SUCCESS }
	d.GetProcessUtilizationFunc = func(uint64) ([]nvml.ProcessUtilizationSample, nvml.Return) { return nil, nvml.ERROR_NOT_FOUND }
	d.GetPowerUsageFunc = func() (uint32, nvml.Return) { return 412_345, nvml.SUCCESS }
	d.GetRemappedRowsFunc = func() (int, int, bool, bool, nvml.Return) { return 0, 0, false, false, nvml.SUCCESS }
	d.GetComputeRunningProcessesFunc = func() ([]nvml.ProcessInfo, nvml.Return) { return nil, nvml.SUCCESS }
	d.GetGraphicsRunningProcessesFunc = func() ([]nvml.ProcessInfo, nvml.Return) { return nil, nvml.ERROR_NOT_SUPPORTED }
	d.GetMinorNumberFunc = func() (int, nvml.Return) { return i, nvml.SUCCESS }
	d.GetRetiredPagesPendingStatusFunc = func() (nvml.EnableState, nvml.Return) { return 0, nvml.ERROR_NOT_SUPPORTED }
	d.RegisterEventsFunc = func(uint64, nvml.EventSet) nvml.Return { return nvml.SUCCESS }
}

func pci(bus string) (p nvml.PciInfo) {
	for i := range len(bus) {
		p.BusId[i] = int8(bus[i])
	}
	return p
}

func h100s() *machine { return newMachine(dgxh100.New()) }

func start(t *testing.T, m *machine) *nvmlSource {
	t.Helper()
	sysfs := t.TempDir()
	for i := range m.devices {
		dir := filepath.Join(sysfs, fmt.Sprintf("0000:%02x:00.0", i+1))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "numa_node"), fmt.Appendf(nil, "%d\n", i/4), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	src, err := initialise(m, sysfs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(src.close)
	return src.(*nvmlSource)
}

// machines are go-nvml's own mock servers, each of eight cards.
func machines() map[string]*machine {
	return map[string]*machine{"dgxa100": newMachine(dgxa100.New()), "dgxh100": h100s(), "dgxh200": newMachine(dgxh200.New()), "dgxb200": newMachine(dgxb200.New())}
}

func init() {
	for name := range machines() {
		machinePlays[name] = func() (source, error) { return initialise(named(name), "/nonexistent") }
	}
}

// named is a mock server at work whose cards have the same names each time.
func named(name string) *machine {
	m := machines()[name]
	for i, d := range m.devices {
		d.UUID = fmt.Sprintf("GPU-%s-%d", name, i)
		if i < 2 {
			d.MemoryInfo.Used = 39 << 30
			d.GetComputeRunningProcessesFunc = func() ([]nvml.ProcessInfo, nvml.Return) {
				return []nvml.ProcessInfo{{Pid: uint32(4000 + i), UsedGpuMemory: 39 << 30}}, nvml.SUCCESS
			}
		}
	}
	return m
}

// TestMachines: the contract over each mock server, through a child.
func TestMachines(t *testing.T) {
	for name := range machines() {
		t.Run(name, func(t *testing.T) {
			gputest.Run(t, 8, func(t *testing.T) gpu.Provider { return provider(t, name, 0, time.Nanosecond) })
		})
	}
}

var update = flag.Bool("update", false, "write the recordings of the mock servers")

// TestRecordingsOfMachines: what the child says of the mock servers is what was recorded.
func TestRecordingsOfMachines(t *testing.T) {
	for name, open := range machinePlays {
		var out bytes.Buffer
		if code := serve(context.Background(), strings.NewReader("inventory\nsample\n"), &out, open); code != 0 {
			t.Fatal(code)
		}
		file := filepath.Join("testdata", name+recordingSuffix)
		if *update {
			if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(file); err != nil || !bytes.Equal(want, out.Bytes()) {
			t.Errorf("%s is not current (%v); go test ./pkg/node/gpu/nvmlgpu -update writes it", file, err)
		}
	}
}

func TestInventory(t *testing.T) {
	for name, m := range machines() {
		t.Run(name, func(t *testing.T) {
			cards, err := start(t, m).inventory()
			if err != nil || len(cards) != 8 {
				t.Fatalf("%d cards, %v", len(cards), err)
			}
			for i, c := range cards {
				d := m.devices[i]
				if c.Index != i || c.UUID != d.UUID || c.Model != d.Config.Name || c.VRAMBytes != int64(d.MemoryInfo.Total)-kept || c.MIG ||
					c.PCI != fmt.Sprintf("00000000:%02X:00.0", i+1) || c.NUMA != i/4 || c.Device != fmt.Sprintf("/dev/nvidia%d", i) || c.Driver != m.DriverVersion ||
					c.Compute != fmt.Sprintf("%d.%d", d.Config.CudaMajor, d.Config.CudaMinor) || len(c.Peers) != 7 || slices.Contains(c.Peers, i) {
					t.Errorf("card %d: %+v", i, c)
				}
			}
		})
	}
}

func TestDirectLinks(t *testing.T) {
	m := h100s()
	for i, d := range m.devices {
		d.GetNvLinkRemotePciInfoFunc = func(int) (nvml.PciInfo, nvml.Return) { // pairs by bridge
			return pci(fmt.Sprintf("00000000:%02X:00.0", (i^1)+1)), nvml.SUCCESS
		}
	}
	m.devices[6].GetNvLinkStateFunc = func(int) (nvml.EnableState, nvml.Return) { return 0, nvml.ERROR_NOT_SUPPORTED }
	m.devices[7].GetNvLinkStateFunc = m.devices[6].GetNvLinkStateFunc
	cards, _ := start(t, m).inventory()
	var peers [][]int
	for _, c := range cards {
		peers = append(peers, c.Peers)
	}
	if want := [][]int{{1}, {0}, {3}, {2}, {5}, {4}, nil, nil}; !reflect.DeepEqual(peers, want) {
		t.Errorf("peers %v, want %v", peers, want)
	}
}

// TestMemoryOfOlderDrivers: a driver that does not tell apart what it keeps is asked as before,
// and never for what its library lacks.
func TestMemoryOfOlderDrivers(t *testing.T) {
	for name, older := range map[string]func(*machine){
		"no such function": func(m *machine) {
			m.ExtensionsFunc = symbols(errors.New("undefined symbol"))
			for _, d := range m.devices {
				d.GetMemoryInfo_v2Func = nil // the mock panics on a call
			}
		},
		"not for this card": func(m *machine) {
			for _, d := range m.devices {
				d.GetMemoryInfo_v2Func = func() (nvml.Memory_v2, nvml.Return) { return nvml.Memory_v2{}, nvml.ERROR_NOT_SUPPORTED }
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := h100s()
			older(m)
			s := start(t, m)
			cards, _ := s.inventory()
			samples, _ := s.sample()
			if total := int64(m.devices[0].MemoryInfo.Total); cards[0].VRAMBytes != total || samples[5].UsedBytes != kept {
				t.Errorf("%d of %d bytes used", samples[5].UsedBytes, cards[0].VRAMBytes)
			}
		})
	}
}

// TestMIG: a card that is cut up is not a card; its instances are.
func TestMIG(t *testing.T) {
	m := h100s()
	m.devices[1].MigMode = nvml.DEVICE_MIG_ENABLE
	m.devices[1].GetMaxMigDeviceCountFunc = func() (int, nvml.Return) { return 7, nvml.SUCCESS }
	m.devices[1].GetMigDeviceHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
		if i > 1 {
			return nil, nvml.ERROR_NOT_FOUND
		}
		d := dgxh100.NewDevice(100 + i)
		complete(d, 1)
		d.UUID = fmt.Sprintf("MIG-%d", i)
		d.MemoryInfo = nvml.Memory{Total: 20 << 30, Used: 1 << 30}
		return d, nvml.SUCCESS
	}
	s := start(t, m)
	cards, _ := s.inventory()
	samples, _ := s.sample()
	if len(cards) != 9 || len(samples) != 9 {
		t.Fatalf("%d cards, %d samples", len(cards), len(samples))
	}
	for i, c := range cards {
		mig := i == 1 || i == 2
		if c.Index != i || c.MIG != mig || (mig && (c.UUID != fmt.Sprintf("MIG-%d", i-1) || c.VRAMBytes != 20<<30-kept || c.Peers != nil || samples[i].Utilization != -1)) ||
			(!mig && (len(c.Peers) != 6 || slices.Contains(c.Peers, 1) || samples[i].Utilization != 97)) {
			t.Errorf("card %d: %+v, %+v", i, c, samples[i])
		}
	}
}

func TestSample(t *testing.T) {
	m := h100s()
	m.devices[0].MemoryInfo.Used = 43 << 30
	m.devices[0].GetComputeRunningProcessesFunc = func() ([]nvml.ProcessInfo, nvml.Return) {
		return []nvml.ProcessInfo{{Pid: 7, UsedGpuMemory: 42 << 30}, {Pid: 8, UsedGpuMemory: ^uint64(0)}}, nvml.SUCCESS
	}
	m.devices[0].GetGraphicsRunningProcessesFunc = func() ([]nvml.ProcessInfo, nvml.Return) {
		return []nvml.ProcessInfo{{Pid: 7, UsedGpuMemory: 42 << 30}, {Pid: 9, UsedGpuMemory: 1 << 20}}, nvml.SUCCESS
	}
	unknown := m.devices[1]
	unknown.GetUtilizationRatesFunc = func() (nvml.Utilization, nvml.Return) { return nvml.Utilization{}, nvml.ERROR_NOT_SUPPORTED }
	unknown.GetPowerUsageFunc = func() (uint32, nvml.Return) { return 0, nvml.ERROR_NOT_SUPPORTED }
	m.devices[3].GetRemappedRowsFunc = func() (int, int, bool, bool, nvml.Return) { return 0, 9, false, true, nvml.SUCCESS }
	m.devices[4].GetRetiredPagesPendingStatusFunc = func() (nvml.EnableState, nvml.Return) { return nvml.FEATURE_ENABLED, nvml.SUCCESS }
	s := start(t, m)
	lost := func() (nvml.Memory_v2, nvml.Return) { return nvml.Memory_v2{}, nvml.ERROR_GPU_IS_LOST }
	m.devices[2].GetMemoryInfo_v2Func = lost // after the inventory

	got, err := s.sample()
	if err != nil {
		t.Fatal(err)
	}
	want := map[int]gpu.Sample{
		0: {UsedBytes: 43 << 30, Utilization: 97, PowerWatts: 412, StrangersBytes: -1,
			Processes: []gpu.Process{{PID: 7, VRAMBytes: 42 << 30}, {PID: 8, VRAMBytes: -1}, {PID: 9, VRAMBytes: 1 << 20}}},
		1: {UsedBytes: 0, Utilization: -1, PowerWatts: -1, StrangersBytes: -1},
		2: {UsedBytes: -1, Utilization: 97, PowerWatts: 412, StrangersBytes: -1, Unhealthy: "fell off the bus"},
		3: {UsedBytes: 0, Utilization: 97, PowerWatts: 412, StrangersBytes: -1, Unhealthy: "a row of its memory could not be remapped"},
		4: {UsedBytes: 0, Utilization: 97, PowerWatts: 412, StrangersBytes: -1, Unhealthy: "a bad page of its memory waits for a reset"},
	}
	for i, w := range want {
		w.UUID = m.devices[i].UUID
		if !reflect.DeepEqual(got[i], w) {
			t.Errorf("card %d:\n got %+v\nwant %+v", i, got[i], w)
		}
	}
}

// using is the driver's answer to which processes used a card after a time.
func using(samples ...nvml.ProcessUtilizationSample) func(uint64) ([]nvml.ProcessUtilizationSample, nvml.Return) {
	return func(since uint64) ([]nvml.ProcessUtilizationSample, nvml.Return) {
		newer := slices.DeleteFunc(slices.Clone(samples), func(s nvml.ProcessUtilizationSample) bool { return s.TimeStamp <= since })
		if len(newer) == 0 {
			return nil, nvml.ERROR_NOT_FOUND
		}
		return append(newer, nvml.ProcessUtilizationSample{}), nvml.SUCCESS // the driver leaves entries empty
	}
}

// TestUsers: who used a card is known from the second reading on, stands while the driver has
// nothing newer for a while, and is unknown where it does not say or says what can't be.
func TestUsers(t *testing.T) {
	m := h100s()
	s := start(t, m)
	d := m.devices[0]
	look := func() string {
		t.Helper()
		got, err := s.sample()
		if err != nil {
			t.Fatal(err)
		}
		if !got[0].UsersKnown {
			return "unknown"
		}
		return fmt.Sprint(got[0].Users)
	}
	at := func(pid uint32, time uint64, sm, dec uint32) nvml.ProcessUtilizationSample {
		return nvml.ProcessUtilizationSample{Pid: pid, TimeStamp: time, SmUtil: sm, DecUtil: dec}
	}
	old := []nvml.ProcessUtilizationSample{at(7, 1000, 90, 0), at(8, 900, 80, 0)}
	if got := look(); got != "unknown" {
		t.Errorf("before any figure: %s", got)
	}
	d.GetProcessUtilizationFunc = using(old...)
	if got := look(); got != "unknown" {
		t.Errorf("what the driver had kept: %s", got)
	}
	d.GetProcessUtilizationFunc = using(append(old, at(8, 2000, 60, 0), at(7, 1500, 0, 0), at(8, 2500, 40, 0), at(7, 2500, 0, 12))...)
	for range 2 { // there is nothing newer the second time
		if got := look(); got != "[{7 12} {8 60}]" {
			t.Errorf("used %s", got)
		}
	}
	s.use[0].taken = time.Now().Add(-useStands - time.Second)
	if got := look(); got != "unknown" {
		t.Errorf("nothing newer for long: %s", got)
	}
	d.GetProcessUtilizationFunc = using(at(7, 3000, 1<<30, 0), at(8, 3000, 60, 0))
	if got := look(); got != "unknown" {
		t.Errorf("more than all of it: %s", got)
	}
	d.GetProcessUtilizationFunc = func(uint64) ([]nvml.ProcessUtilizationSample, nvml.Return) { return nil, nvml.ERROR_NOT_SUPPORTED }
	if got := look(); got != "unknown" {
		t.Errorf("not supported: %s", got)
	}
}

// TestStrangerOnTheCard: a gang that does nothing is found beside a stranger who keeps its card
// busy, where the driver says who used it; where it does not, nothing is known, and a gang that
// works is seen to.
func TestStrangerOnTheCard(t *testing.T) {
	const mine, theirs = 7, 8
	m := h100s()
	s := start(t, m)
	d := m.devices[3]
	d.GetUtilizationRatesFunc = func() (nvml.Utilization, nvml.Return) { return nvml.Utilization{Gpu: 60}, nvml.SUCCESS }
	d.GetComputeRunningProcessesFunc = func() ([]nvml.ProcessInfo, nvml.Return) {
		return []nvml.ProcessInfo{{Pid: mine, UsedGpuMemory: 1 << 30}, {Pid: theirs, UsedGpuMemory: 1 << 30}}, nvml.SUCCESS
	}
	whose := func(pid int) gpu.Whose { return map[int]gpu.Whose{mine: gpu.Own, theirs: gpu.Other}[pid] }
	check := func(used func(now uint64) []nvml.ProcessUtilizationSample) api.CardsState {
		t.Helper()
		k := watchdog.NewCheck(api.Check{Readings: 3, Interval: time.Second}, watchdog.Idle{Percent: 5, StaticBytes: 1 << 30, HostBytes: 1 << 20}, []string{d.UUID}, 0)
		s.use[3] = use{newest: 1} // it has been asked before
		for n := uint64(0); ; n++ {
			d.GetProcessUtilizationFunc = using(used(1000 + n)...)
			got, err := s.sample()
			if err != nil {
				t.Fatal(err)
			}
			share := got[3].Share(false, whose)
			see := watchdog.Sight{Card: func(string) watchdog.Reading {
				return watchdog.Reading{Utilization: share.Low, AtMost: share.High, UsedBytes: got[3].UsedBytes}
			}}
			if k.Add(time.Duration(n)*time.Second, see) {
				_, f := k.Note()
				return f.State
			}
		}
	}
	both := func(own uint32) func(uint64) []nvml.ProcessUtilizationSample {
		return func(now uint64) []nvml.ProcessUtilizationSample {
			return []nvml.ProcessUtilizationSample{{Pid: mine, TimeStamp: now, SmUtil: own}, {Pid: theirs, TimeStamp: now, SmUtil: 60 - own}}
		}
	}
	if got := check(both(0)); got != api.CardsQuiet {
		t.Errorf("it does nothing, and its card is %s", got)
	}
	if got := check(both(20)); got != api.CardsBusy {
		t.Errorf("it works, and its card is %s", got)
	}
	if got := check(func(uint64) []nvml.ProcessUtilizationSample { return nil }); got != api.CardsUnknown {
		t.Errorf("nobody says who works, and its card is %s", got)
	}
}

// TestXid: a fatal one stays on its card, one of an application leaves no trace.
func TestXid(t *testing.T) {
	m := h100s()
	s := start(t, m)
	xid := func(card int, number uint64) {
		m.events <- nvml.EventData{Device: m.devices[card], EventType: nvml.EventTypeXidCriticalError, EventData: number}
	}
	xid(0, 31)
	xid(5, 79)
	xid(6, 13) // taken when the one before has been dealt with
	got, _ := s.sample()
	for i, g := range got {
		if want := map[int]int{5: 79}[i]; g.Xid != want {
			t.Errorf("card %d: Xid %d, want %d", i, g.Xid, want)
		}
	}
}

// TestNoDriver: nothing is called after an Init that failed; the mock panics on any call
// that it was not given.
func TestNoDriver(t *testing.T) {
	for ret, want := range map[nvml.Return]string{
		nvml.ERROR_LIBRARY_NOT_FOUND: "no NVML library (libnvidia-ml.so.1)",
		nvml.ERROR_DRIVER_NOT_LOADED: "the NVIDIA driver is not loaded",
		nvml.ERROR_NO_PERMISSION:     "NVML finds no card that this user may use (status 4)",
		nvml.ERROR_UNKNOWN:           "NVML does not start: status 999",
	} {
		_, err := initialise(&mock.Interface{InitFunc: func() nvml.Return { return ret }}, "/nonexistent")
		_, none := err.(errNone) //nolint:errorlint // made there
		if err == nil || err.Error() != want || none == (ret == nvml.ERROR_UNKNOWN) {
			t.Errorf("status %d: %v", ret, err)
		}
	}
}

// TestThisMachine asks the real library, whatever this machine has.
func TestThisMachine(t *testing.T) {
	src, err := openNVML()
	if err != nil {
		t.Skip(err)
	}
	defer src.close()
	cards, err := src.inventory()
	if err != nil {
		t.Fatal(err)
	}
	samples, err := src.sample()
	if err != nil || len(samples) != len(cards) {
		t.Fatalf("%d samples of %d cards, %v", len(samples), len(cards), err)
	}
	for i := range cards {
		t.Logf("%+v %+v", cards[i], samples[i])
	}
}

// BenchmarkSample is what a reading of eight cards costs the daemon (self) and the probe child,
// which here asks a mock server instead of a driver.
func BenchmarkSample(b *testing.B) {
	b.Setenv(childEnv, "dgxh100")
	p, err := New(Options{Command: []string{os.Args[0]}})
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	if s, err := p.Sample(context.Background()); err != nil || len(s) != 8 {
		b.Fatal(len(s), err)
	}
	pid := p.child.cmd.Process.Pid
	self, child := cpuOf(b, os.Getpid()), cpuOf(b, pid)
	for b.Loop() {
		if _, err := p.Sample(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
	n := float64(b.N)
	b.ReportMetric(float64(cpuOf(b, os.Getpid())-self)/n/1e3, "self-us/op")
	b.ReportMetric(float64(cpuOf(b, pid)-child)/n/1e3, "child-us/op")
}

// cpuOf is the CPU time of a process, in nanoseconds.
func cpuOf(b *testing.B, pid int) int64 {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		b.Fatal(err)
	}
	var sum int64
	for _, t := range tasks {
		var ns int64
		if text, err := os.ReadFile(t); err == nil {
			_, _ = fmt.Sscan(string(text), &ns)
		}
		sum += ns
	}
	return sum
}
