package proc

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Device is the number of a character device, as stat has it.
type Device struct {
	Major uint32 `json:"major"`
	Minor uint32 `json:"minor"`
}

// DeviceAt is the device behind a path.
func DeviceAt(path string) (Device, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return Device{}, fmt.Errorf("%s: %w", path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFCHR {
		return Device{}, fmt.Errorf("%s is no character device", path)
	}
	return Device{Major: unix.Major(st.Rdev), Minor: unix.Minor(st.Rdev)}, nil
}

// In cgroup v2 there is no file for devices: the kernel asks a BPF program that is attached to
// the group, at each open. Ours names what is kept from the group; all else stays as the
// groups above have it. It lives as long as the group.

// Numbers of linux/bpf.h that x/sys does not carry under CGO_ENABLED=0 on all platforms.
const (
	bpfProgLoad         = 5
	bpfProgAttach       = 8
	bpfTypeCgroupDevice = 15
	bpfAttachDevice     = 6
	bpfAllowMulti       = 2 // beside programs of others, a container manager's say
	charDevice          = 2 // in the lower half of bpf_cgroup_dev_ctx.access_type
)

// instruction is one of eBPF's, as the kernel reads it.
type instruction struct {
	code byte
	dst  byte
	src  byte
	off  int16
	imm  int32
}

func (i instruction) encode(b []byte) []byte {
	b = append(b, i.code, i.dst|i.src<<4)
	b = binary.NativeEndian.AppendUint16(b, uint16(i.off))
	return binary.NativeEndian.AppendUint32(b, uint32(i.imm))
}

// denyProgram answers 0 (no) for the devices and 1 for all others.
func denyProgram(denied []Device) []byte {
	const loadWord, and, jumpNot, jumpIs, move, exit = 0x61, 0x57, 0x55, 0x15, 0xb7, 0x95
	prog := []instruction{
		{code: loadWord, dst: 2, src: 1, off: 0}, // access_type
		{code: and, dst: 2, imm: 0xffff},
		{code: loadWord, dst: 3, src: 1, off: 4}, // major
		{code: loadWord, dst: 4, src: 1, off: 8}, // minor
		{code: jumpNot, dst: 2, off: int16(2 * len(denied)), imm: charDevice},
	}
	for i, d := range denied {
		after := 2*(len(denied)-i-1) + 2 // instructions between the second jump and the answer no
		prog = append(prog,
			instruction{code: jumpNot, dst: 3, off: 1, imm: int32(d.Major)},
			instruction{code: jumpIs, dst: 4, off: int16(after), imm: int32(d.Minor)})
	}
	prog = append(prog, instruction{code: move, imm: 1}, instruction{code: exit}, instruction{code: move, imm: 0}, instruction{code: exit})
	var b []byte
	for _, i := range prog {
		b = i.encode(b)
	}
	return b
}

func denyDevices(dir string, denied []Device) error {
	if len(denied) == 0 {
		return nil
	}
	prog, err := loadProgram(denyProgram(denied))
	if err != nil {
		return fmt.Errorf("keep devices from %s: %w", dir, err)
	}
	defer syscall.Close(prog)
	group, err := openRetry(dir, syscall.O_RDONLY|syscall.O_DIRECTORY)
	if err != nil {
		return fmt.Errorf("keep devices from %s: %w", dir, err)
	}
	defer syscall.Close(group)
	attr := struct{ target, prog, kind, flags uint32 }{uint32(group), uint32(prog), bpfAttachDevice, bpfAllowMulti}
	if _, err := bpf(bpfProgAttach, unsafe.Pointer(&attr), unsafe.Sizeof(attr)); err != nil {
		return fmt.Errorf("keep devices from %s: %w", dir, err)
	}
	return nil
}

func loadProgram(code []byte) (int, error) {
	license := []byte("Apache-2.0\x00") // it calls nothing that asks for another
	attr := struct {
		kind, count    uint32
		code, license  uint64
		level, size    uint32
		log            uint64
		version, flags uint32
	}{kind: bpfTypeCgroupDevice, count: uint32(len(code) / 8), code: uint64(uintptr(unsafe.Pointer(&code[0]))),
		license: uint64(uintptr(unsafe.Pointer(&license[0])))}
	fd, err := bpf(bpfProgLoad, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
	runtime.KeepAlive(code)
	runtime.KeepAlive(license)
	return fd, err
}

func bpf(command uintptr, attr unsafe.Pointer, size uintptr) (int, error) {
	for {
		r, _, e := syscall.Syscall(unix.SYS_BPF, command, uintptr(attr), size)
		if e == syscall.EAGAIN || e == syscall.EINTR { // the verifier was interrupted by a signal
			continue
		}
		if e != 0 {
			return -1, e
		}
		return int(r), nil
	}
}

// DevicesDeniable says why devices can't be kept from the members of a containment below dir;
// nil: they can. It has really done so to a group there.
func DevicesDeniable(kind, dir string) error {
	switch kind {
	case Cgroup2:
	case Cgroup1:
		return fmt.Errorf("cgroup v1")
	default:
		return fmt.Errorf("no cgroups")
	}
	probe := filepath.Join(dir, "devices."+strconv.Itoa(syscall.Getpid()))
	if err := mkdirGroup(probe); err != nil {
		return err
	}
	defer syscall.Rmdir(probe)
	return denyDevices(probe, []Device{{Major: 1, Minor: 7}}) // /dev/full
}
