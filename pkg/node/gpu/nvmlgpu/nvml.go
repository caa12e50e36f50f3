//go:build cgo

package nvmlgpu

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"gangd/pkg/api"
	"gangd/pkg/node/gpu"
)

// nvmlSource reads cards through one initialised NVML.
type nvmlSource struct {
	lib    nvml.Interface
	sysfs  string // root of the PCI devices
	driver string
	apart  bool // the driver tells apart what it keeps of a card's memory

	cards   []api.CardInfo
	devices []device // parallel to cards
	use     []use    // parallel too
	faults  *faults
}

// device is a card with what is known of its GPU.
type device struct {
	nvml.Device
	gpu nvml.Device // a MIG instance's GPU; else itself
	id  string      // UUID of the GPU
}

func openNVML() (source, error) { return initialise(nvml.New(), "/sys/bus/pci/devices") }

// initialise makes the one Init call of this process. Library and driver that are absent,
// or a driver without a device, are "no cards"; nothing is called after any failure.
func initialise(lib nvml.Interface, sysfs string) (source, error) {
	switch ret := lib.Init(); ret {
	case nvml.SUCCESS:
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return nil, errNone{"no NVML library (libnvidia-ml.so.1)"}
	case nvml.ERROR_DRIVER_NOT_LOADED:
		return nil, errNone{"the NVIDIA driver is not loaded"}
	case nvml.ERROR_NOT_FOUND, nvml.ERROR_NO_PERMISSION:
		return nil, errNone{fmt.Sprintf("NVML finds no card that this user may use (status %d)", ret)}
	default:
		// Its text would be another call into the library.
		return nil, fmt.Errorf("NVML does not start: status %d", ret)
	}
	s := &nvmlSource{lib: lib, sysfs: sysfs}
	s.driver, _ = value(lib.SystemGetDriverVersion())
	// A call of what an older library lacks would end this process.
	s.apart = lib.Extensions().LookupSymbol("nvmlDeviceGetMemoryInfo_v2") == nil
	if err := s.find(); err != nil {
		lib.Shutdown()
		return nil, err
	}
	s.use = make([]use, len(s.devices))
	s.faults = watchFaults(lib, s.devices)
	return s, nil
}

// value turns a status that is not success into "not known".
func value[T any](v T, ret nvml.Return) (T, bool) { return v, ret == nvml.SUCCESS }

func (s *nvmlSource) close() {
	s.faults.stop()
	s.lib.Shutdown()
}

func (s *nvmlSource) inventory() ([]api.CardInfo, error) { return s.cards, nil }

// find lists the cards once: the numbering may not change while the child lives.
func (s *nvmlSource) find() error {
	count, ret := s.lib.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return fmt.Errorf("count of cards: %v", ret)
	}
	var gpus []nvml.Device
	for i := range count {
		d, ret := s.lib.DeviceGetHandleByIndex(i)
		if ret != nvml.SUCCESS {
			// One that is off the bus since before the start: the others are still good.
			fmt.Fprintf(os.Stderr, "card %d: %v\n", i, ret)
			continue
		}
		gpus = append(gpus, d)
	}
	first := make([]int, len(gpus)) // index of the card that a GPU is, -1: it is cut up
	for i, d := range gpus {
		n := len(s.cards)
		if err := s.add(d); err != nil {
			return fmt.Errorf("card %d: %w", i, err)
		}
		first[i] = -1
		if len(s.cards) == n+1 && !s.cards[n].MIG {
			first[i] = n
		}
	}
	for i, peers := range linked(gpus) {
		for _, p := range peers {
			if first[i] >= 0 && first[p] >= 0 {
				s.cards[first[i]].Peers = append(s.cards[first[i]].Peers, first[p])
			}
		}
	}
	return nil
}

// add lists a GPU, or its MIG instances when it is cut up.
func (s *nvmlSource) add(d nvml.Device) error {
	uuid, ret := d.GetUUID()
	if ret != nvml.SUCCESS {
		return fmt.Errorf("UUID: %v", ret)
	}
	pci := busID(d)
	base := api.CardInfo{PCI: pci, NUMA: s.numa(pci), Driver: s.driver}
	if minor, ret := d.GetMinorNumber(); ret == nvml.SUCCESS {
		base.Device = "/dev/nvidia" + strconv.Itoa(minor)
	}
	if major, minor, ret := d.GetCudaComputeCapability(); ret == nvml.SUCCESS {
		base.Compute = fmt.Sprintf("%d.%d", major, minor)
	}
	current, _, ret := d.GetMigMode()
	if ret != nvml.SUCCESS || current != nvml.DEVICE_MIG_ENABLE {
		return s.card(base, device{Device: d, gpu: d, id: uuid}, uuid)
	}
	most, _ := value(d.GetMaxMigDeviceCount())
	for i := range most {
		m, ret := d.GetMigDeviceHandleByIndex(i)
		if ret != nvml.SUCCESS {
			continue // a place without an instance
		}
		id, ret := m.GetUUID()
		if ret != nvml.SUCCESS {
			return fmt.Errorf("UUID of MIG instance %d: %v", i, ret)
		}
		base.MIG = true
		if err := s.card(base, device{Device: m, gpu: d, id: uuid}, id); err != nil {
			return fmt.Errorf("MIG instance %d: %w", i, err)
		}
	}
	return nil
}

func (s *nvmlSource) card(c api.CardInfo, d device, uuid string) error {
	var ret nvml.Return
	c.Index, c.UUID = len(s.cards), uuid
	if c.Model, ret = d.GetName(); ret != nvml.SUCCESS {
		return fmt.Errorf("name: %v", ret)
	}
	if c.VRAMBytes, _, ret = s.memory(d); ret != nvml.SUCCESS {
		return fmt.Errorf("memory: %v", ret)
	}
	s.cards, s.devices = append(s.cards, c), append(s.devices, d)
	return nil
}

// memory gives what processes can have of a card, and what they hold. What the driver keeps
// for itself is in neither; a driver that does not tell it apart counts it in both.
func (s *nvmlSource) memory(d nvml.Device) (total, used int64, ret nvml.Return) {
	if s.apart {
		m, ret := d.GetMemoryInfo_v2()
		if ret != nvml.ERROR_NOT_SUPPORTED {
			return int64(m.Total - m.Reserved), int64(m.Used), ret
		}
	}
	m, ret := d.GetMemoryInfo()
	return int64(m.Total), int64(m.Used), ret
}

func busID(d nvml.Device) string {
	p, ret := d.GetPciInfo()
	if ret != nvml.SUCCESS {
		return ""
	}
	return busText(p)
}

func busText(p nvml.PciInfo) string {
	var b []byte
	for _, c := range p.BusId {
		if c == 0 {
			break
		}
		b = append(b, byte(c))
	}
	return string(b)
}

// numa reads the node from sysfs, whose names have four digits of the domain where NVML
// has eight. The kernel writes -1 where the firmware does not say.
func (s *nvmlSource) numa(bus string) int {
	name := strings.ToLower(bus)
	if len(name) == len("00000000:01:00.0") {
		name = name[4:]
	}
	b, err := os.ReadFile(filepath.Join(s.sysfs, filepath.Base(name), "numa_node"))
	if err != nil {
		return -1
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// linked gives for each GPU those that NVLink connects it with: directly, or because both
// have a link to something that is no GPU, which is a switch.
func linked(gpus []nvml.Device) [][]int {
	byBus := make(map[string]int, len(gpus))
	for i, d := range gpus {
		if bus := busID(d); bus != "" {
			byBus[bus] = i
		}
	}
	direct := make([]map[int]bool, len(gpus))
	switched := make([]bool, len(gpus))
	for i, d := range gpus {
		direct[i] = make(map[int]bool)
		for link := range nvml.NVLINK_MAX_LINKS {
			if state, ret := d.GetNvLinkState(link); ret == nvml.ERROR_INVALID_ARGUMENT || ret == nvml.ERROR_NOT_SUPPORTED {
				break // there are no more
			} else if ret != nvml.SUCCESS || state != nvml.FEATURE_ENABLED {
				continue
			}
			remote, ret := d.GetNvLinkRemotePciInfo(link)
			if ret != nvml.SUCCESS {
				continue
			}
			if peer, ok := byBus[busText(remote)]; ok {
				direct[i][peer] = true
			} else {
				switched[i] = true
			}
		}
	}
	out := make([][]int, len(gpus))
	for i := range gpus {
		for p := range gpus {
			if p != i && (direct[i][p] || direct[p][i] || (switched[i] && switched[p])) {
				out[i] = append(out[i], p)
			}
		}
	}
	return out
}

func (s *nvmlSource) sample() ([]gpu.Sample, error) {
	out := make([]gpu.Sample, len(s.cards))
	for i := range s.cards {
		out[i] = s.read(i)
	}
	return out, nil
}

// read asks one card for everything; each figure that it does not give is unknown.
func (s *nvmlSource) read(i int) gpu.Sample {
	d := s.devices[i]
	out := gpu.Sample{UUID: s.cards[i].UUID, UsedBytes: -1, Utilization: -1, PowerWatts: -1, StrangersBytes: -1}
	_, used, ret := s.memory(d)
	if ret == nvml.SUCCESS {
		out.UsedBytes = used
	}
	out.Unhealthy = unhealthy(ret)
	if !s.cards[i].MIG { // NVML has no utilisation of an instance
		if u, ret := d.GetUtilizationRates(); ret == nvml.SUCCESS {
			out.Utilization = int(u.Gpu)
		}
		out.Users, out.UsersKnown = s.users(i)
	}
	if mw, ret := d.gpu.GetPowerUsage(); ret == nvml.SUCCESS {
		out.PowerWatts = int(mw / 1000)
	}
	if _, _, _, failed, ret := d.gpu.GetRemappedRows(); ret == nvml.SUCCESS && failed && out.Unhealthy == "" {
		out.Unhealthy = "a row of its memory could not be remapped"
	}
	// Cards before Ampere retire pages instead, and go on handing out a bad one until a reset.
	if pending, ret := d.gpu.GetRetiredPagesPendingStatus(); ret == nvml.SUCCESS && pending == nvml.FEATURE_ENABLED && out.Unhealthy == "" {
		out.Unhealthy = "a bad page of its memory waits for a reset"
	}
	out.Processes = processes(d)
	out.Xid = s.faults.last(d.id)
	return out
}

func unhealthy(ret nvml.Return) string {
	switch ret {
	case nvml.ERROR_GPU_IS_LOST:
		return "fell off the bus"
	case nvml.ERROR_RESET_REQUIRED:
		return "needs a reset"
	case nvml.ERROR_UNKNOWN:
		return "the driver does not answer for it"
	}
	return ""
}

// processes lists who holds VRAM, compute and graphics alike; a process of both kinds
// counts once.
func processes(d nvml.Device) []gpu.Process {
	var out []gpu.Process
	seen := make(map[uint32]bool)
	compute, _ := d.GetComputeRunningProcesses()
	graphics, _ := d.GetGraphicsRunningProcesses()
	for _, p := range append(compute, graphics...) {
		if seen[p.Pid] {
			continue
		}
		seen[p.Pid] = true
		vram := int64(-1) // in a container NVML does not know the figure
		if p.UsedGpuMemory != ^uint64(0) {
			vram = int64(p.UsedGpuMemory)
		}
		out = append(out, gpu.Process{PID: int(p.Pid), VRAMBytes: vram})
	}
	return out
}

// use is which processes used a card, by the newest figures that the driver had.
type use struct {
	newest uint64 // the driver's time of them, 0: none was asked for yet
	taken  time.Time
	users  []gpu.User
}

// useStands is how long figures of use stand when there are no newer ones: the driver takes
// them at most a second apart.
const useStands = 2 * time.Second

// users lists which processes used a card since it was last asked. What the driver kept from
// before the first question is as old as it likes, and says nothing of now. That there is
// nothing newer does not mean that nobody used it.
func (s *nvmlSource) users(i int) (users []gpu.User, known bool) {
	was := &s.use[i]
	samples, ret := s.devices[i].GetProcessUtilization(was.newest)
	if ret != nvml.SUCCESS && ret != nvml.ERROR_NOT_FOUND {
		return nil, false
	}
	first, newest, at := was.newest == 0, was.newest, map[uint32]int{}
	for _, p := range samples {
		if p.Pid == 0 || p.TimeStamp <= was.newest { // an entry that was not filled in
			continue
		}
		newest = max(newest, p.TimeStamp)
		u := max(p.SmUtil, p.MemUtil, p.EncUtil, p.DecUtil)
		if u > 100 { // drivers were seen to give such figures: none of these is to be believed
			return nil, false
		}
		at[p.Pid] = max(at[p.Pid], int(u))
	}
	if newest == was.newest {
		if time.Since(was.taken) > useStands {
			was.users = nil
			return nil, false
		}
		return was.users, true
	}
	if was.newest = newest; first {
		return nil, false
	}
	for _, pid := range slices.Sorted(maps.Keys(at)) {
		users = append(users, gpu.User{PID: int(pid), Utilization: at[pid]})
	}
	was.taken, was.users = time.Now(), users
	return users, true
}

// faults remembers the last fatal Xid of each GPU. It owns one goroutine that waits for
// the driver's events.
type faults struct {
	set  nvml.EventSet
	quit chan struct{}
	done sync.WaitGroup

	mu   sync.Mutex
	xids map[string]int // by UUID of the GPU
}

// eventWait bounds one wait for events, and so how long stop takes.
const eventWait = 200 // ms

func watchFaults(lib nvml.Interface, devices []device) *faults {
	f := &faults{quit: make(chan struct{}), xids: make(map[string]int)}
	set, ret := lib.EventSetCreate()
	if ret != nvml.SUCCESS {
		return f
	}
	f.set = set
	watched := 0
	for _, d := range devices {
		// Registering a GPU twice, for two instances, does no harm.
		if d.gpu.RegisterEvents(nvml.EventTypeXidCriticalError, set) == nvml.SUCCESS {
			watched++
		}
	}
	if watched > 0 {
		f.done.Go(f.run)
	}
	return f
}

func (f *faults) run() {
	for {
		select {
		case <-f.quit:
			return
		default:
		}
		e, ret := f.set.Wait(eventWait)
		if errors.Is(ret, nvml.ERROR_TIMEOUT) {
			continue
		}
		if ret != nvml.SUCCESS {
			return // the samples themselves will say what is wrong
		}
		if e.EventType != nvml.EventTypeXidCriticalError || !gpu.FatalXid(int(e.EventData)) {
			continue
		}
		if id, ret := e.Device.GetUUID(); ret == nvml.SUCCESS {
			f.mu.Lock()
			f.xids[id] = int(e.EventData)
			f.mu.Unlock()
		}
	}
}

func (f *faults) last(gpu string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.xids[gpu]
}

func (f *faults) stop() {
	close(f.quit)
	f.done.Wait()
	if f.set != nil {
		f.set.Free()
	}
}
