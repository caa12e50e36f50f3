package sqlitestore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"gangd/pkg/store"
)

// networkFS names the file systems on which SQLite's locks or its shared memory do not
// hold, by the magic number that statfs(2) gives. The numbers are those of statfs(2) and
// of the file systems' own headers. 9P is not among them: it is also how some sandboxes
// show their local disk, and where it can't map shared memory SQLite refuses by itself.
var networkFS = map[int64]string{
	0x6969:     "NFS",
	0x517b:     "SMB",
	0xff534d42: "CIFS",
	0xfe534d42: "SMB2",
	0x0bd00bd0: "Lustre",
	0x00c36400: "CephFS",
	0x47504653: "GPFS",
	0x19830326: "BeeGFS",
	0x5346414f: "AFS",
	0x6b414653: "AFS",
	0x73757245: "Coda",
	0x564c:     "NCP",
	0x7461636f: "OCFS2",
	0x01161970: "GFS2",
	0xaad7aaea: "PanFS",
	0x20030528: "OrangeFS",
}

const fuseMagic = 0x65735546

// fileSystem is statfs's magic number of a directory's file system.
func fileSystem(dir string) (int64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, err
	}
	return int64(uint32(fs.Type)), nil // Type is an int32 on some machines
}

// refuseNetworkFS refuses a directory on a network file system of this magic number.
func refuseNetworkFS(dir string, magic int64, mounts string) error {
	name := networkFS[magic]
	if magic == fuseMagic {
		name = remoteFuse(dir, mounts)
	}
	if name != "" {
		return fmt.Errorf("state directory %s is on %s, where locks and fsync can't be relied on; set state_dir to a directory on a local disk", dir, name)
	}
	return nil
}

// remoteFuse gives the type of a FUSE mount, "" for those that are known to be local: all
// FUSE file systems share one magic number, mountinfo tells them apart.
func remoteFuse(dir, mounts string) string {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return "FUSE"
	}
	dev := fmt.Sprintf("%d:%d", unix.Major(uint64(st.Dev)), unix.Minor(uint64(st.Dev)))
	for line := range strings.Lines(mounts) {
		mount, source, ok := strings.Cut(line, " - ")
		if f := strings.Fields(mount); !ok || len(f) < 3 || f[2] != dev {
			continue
		}
		switch typ, _, _ := strings.Cut(source, " "); typ {
		case "fuseblk", "virtiofs":
			return ""
		default:
			return typ
		}
	}
	return "FUSE"
}

// lockDir takes the state directory for this process. The lock belongs to the open file,
// so that it goes with the process however that ends.
func lockDir(dir string) (*os.File, error) {
	name := filepath.Join(dir, "lock")
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer f.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock %s: %w", name, err)
		}
		holder := "another process"
		if b, err := os.ReadFile(name); err == nil && len(b) > 0 {
			holder = "process " + strings.TrimSpace(string(b))
		}
		return nil, fmt.Errorf("state directory %s is in use by %s: %w", dir, holder, store.ErrLocked)
	}
	// The number is for people; nothing trusts it.
	if err := f.Truncate(0); err == nil {
		_, _ = f.WriteAt(fmt.Appendf(nil, "%d\n", os.Getpid()), 0)
	}
	return f, nil
}

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
