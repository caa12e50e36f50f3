package sqlitestore

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"gangd/pkg/controller/store"
	"gangd/pkg/wire/dirlock"
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
		return fmt.Errorf("state_dir: %s is on %s, where locks and fsync can't be relied on; name a directory on a local disk", dir, name)
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

// lockDir takes the state directory for this process.
func lockDir(dir string) (*os.File, error) {
	f, err := dirlock.Take(dir)
	if held := new(dirlock.HeldError); errors.As(err, &held) {
		return nil, fmt.Errorf("state directory %w: %w", held, store.ErrLocked)
	}
	return f, err
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
