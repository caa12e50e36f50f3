package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
	"gangd/pkg/controller/store/internal/sqlstore"
	"gangd/pkg/controller/store/storetest"
)

func TestNewerSchemaIsRefused(t *testing.T) {
	dir := t.TempDir()
	s := openDir(t, dir)
	if err := s.w.exec("PRAGMA user_version = 99"); err != nil {
		t.Fatal(err)
	}
	s.Close()
	_, err := Open(context.Background(), dir, Options{})
	want := filepath.Join(dir, "state.db") + " has schema 99, this gangd knows schemas up to 15; start the gangd that wrote it or restore a backup made before the upgrade: store has a newer schema"
	if !errors.Is(err, store.ErrNewerSchema) || err.Error() != want {
		t.Errorf("open: %v\nwant: %s", err, want)
	}
}

func TestForeignDatabaseIsRefused(t *testing.T) {
	for name, sql := range map[string]string{
		"0x1":      "PRAGMA application_id = 1",
		"0x0":      "CREATE TABLE photos (id INTEGER)",
		"0x10f2c0": "PRAGMA application_id = 1110720; CREATE TABLE photos (id INTEGER)",
	} {
		dir := t.TempDir()
		w, err := connect(context.Background(), "file:"+filepath.Join(dir, DatabaseName))
		if err != nil {
			t.Fatal(err)
		}
		if err := w.exec(sql); err != nil {
			t.Fatal(err)
		}
		w.close()
		_, err = Open(context.Background(), dir, Options{})
		want := fmt.Sprintf("%s is a database of another program (application id %s, gangd's is 0x67616e67)", filepath.Join(dir, "state.db"), name)
		if err == nil || err.Error() != want {
			t.Errorf("open: %v\nwant: %s", err, want)
		}
	}
}

func TestCorruptFileIsAnError(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, DatabaseName), []byte("this is not a database, whatever its name says, and it is long enough to be looked at whole: "+fmt.Sprint(make([]int, 4096))), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := Open(context.Background(), dir, Options{}); err == nil {
		s.Close()
		t.Error("opened")
	}
	// The directory is free again.
	if err := os.Remove(filepath.Join(dir, DatabaseName)); err != nil {
		t.Fatal(err)
	}
	openDir(t, dir)
}

// TestMigration: a store of an older schema is brought forward, one that stopped half way
// is continued, and what it held is still there.
func TestMigration(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	s := openDir(t, dir)
	if _, err := s.Commit(ctx, storetest.Submitted(storetest.NewJob(1, 1))); err != nil {
		t.Fatal(err)
	}
	s.Close()
	texts, err := sqlstore.Migrations(migrationFiles)
	if err != nil {
		t.Fatal(err)
	}
	more := append(texts, "CREATE TABLE more (a INTEGER)", "INSERT INTO more VALUES (1); INSERT INTO absent VALUES (1)")
	if _, err := open(ctx, dir, Options{}, more); err == nil {
		t.Fatal("a broken migration was not noticed")
	}
	more[len(texts)+1] = "INSERT INTO more VALUES (1)"
	s, err = open(ctx, dir, Options{}, more)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got, err := s.w.Ints("SELECT (SELECT count(*) FROM more), (SELECT user_version FROM pragma_user_version)", 2)
	if err != nil || got[0] != 1 || got[1] != int64(len(more)) {
		t.Errorf("rows and schema: %v, %v", got, err)
	}
	if saved, err := s.Load(ctx, time.Time{}); err != nil || len(saved.Jobs) != 1 {
		t.Errorf("load: %+v, %v", saved, err)
	}
}

// TestTaskSetsMigration: checkpoints and barriers of a store from before steps had their own are those
// of the gang, and sets of tasks go beside them.
func TestTaskSetsMigration(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	texts, err := sqlstore.Migrations(migrationFiles)
	if err != nil {
		t.Fatal(err)
	}
	w, err := connect(ctx, "file:"+filepath.Join(dir, DatabaseName))
	if err != nil {
		t.Fatal(err)
	}
	if err := migrate(w, "old", texts[:8], func() {}); err != nil {
		t.Fatal(err)
	}
	rows := fmt.Sprintf(`
INSERT INTO checkpoint VALUES (7, 1, 2, 0, 1, 3, 'k0'), (8, 1, 2, 1, 1, 4, 'k1');
INSERT INTO checkpoint_piece VALUES (7*%[1]d, CAST('one' AS BLOB)), (8*%[1]d, CAST('twoo' AS BLOB));
INSERT INTO release VALUES (5, 1, 2, 'meet', '{"0":"a","1":"b"}')`, 1024)
	if err := w.exec(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	s := openDir(t, dir)
	read := func(k store.SetKey, rank int) string {
		t.Helper()
		r, size, err := s.Checkpoint(ctx, k, rank)
		if err != nil {
			return err.Error()
		}
		defer r.Close()
		b, err := io.ReadAll(r)
		if err != nil || int64(len(b)) != size {
			t.Errorf("%d bytes of %d, %v", len(b), size, err)
		}
		return string(b)
	}
	gangs, tasks := store.SetKey{MemberKey: api.MemberKey{Job: 1, Epoch: 2}, Step: store.OfRanks}, store.SetKey{MemberKey: api.MemberKey{Job: 1, Epoch: 2}}
	if a, b := read(gangs, 0), read(gangs, 1); a != "one" || b != "twoo" {
		t.Errorf("ranks read %q and %q", a, b)
	}
	if _, _, err := s.Checkpoint(ctx, tasks, 0); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("step 0 had none, and reads %v", err)
	}
	set, _, err := s.PutCheckpoint(ctx, tasks, 0, "", strings.NewReader("of a task"))
	if err != nil || set != (store.CheckpointSet{Ranks: 1, Bytes: 9}) {
		t.Errorf("a task's put: %+v, %v", set, err)
	}
	set, _, err = s.PutCheckpoint(ctx, gangs, 0, "", strings.NewReader("again"))
	if err != nil || set != (store.CheckpointSet{Ranks: 2, Bytes: 9}) {
		t.Errorf("a rank's next put: %+v, %v", set, err)
	}
	if a, b := read(gangs, 1), read(tasks, 0); a != "twoo" || b != "of a task" { // rank 0 is a put ahead
		t.Errorf("then they read %q and %q", a, b)
	}
	all, err := s.Releases(ctx)
	want := []store.Release{{SetKey: gangs, Name: "meet", Keys: map[int]string{0: "a", 1: "b"}}}
	if diff := cmp.Diff(want, all); err != nil || diff != "" {
		t.Errorf("releases: %v, -want +got\n%s", err, diff)
	}
}

func TestMigrationNumbers(t *testing.T) {
	files := fstest.MapFS{"migrations/0001_a.sql": {}, "migrations/0003_b.sql": {}}
	_, err := sqlstore.Migrations(files)
	if err == nil || err.Error() != "migration migrations/0003_b.sql stands at place 2" {
		t.Errorf("a gap: %v", err)
	}
}

func TestLockNamesTheHolder(t *testing.T) {
	dir := t.TempDir()
	openDir(t, dir)
	_, err := Open(context.Background(), dir, Options{})
	want := fmt.Sprintf("state directory %s is in use by process %d: store is locked by another process", dir, os.Getpid())
	if err == nil || err.Error() != want {
		t.Errorf("open: %v\nwant: %s", err, want)
	}
}

func TestNetworkFileSystemsAreRefused(t *testing.T) {
	dir := t.TempDir()
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		t.Fatal(err)
	}
	mount := func(typ string) string {
		return fmt.Sprintf("1 0 0:1 / / rw - ext4 /dev/x rw\n22 1 %d:%d / %s rw,noatime shared:1 - %s source rw\n",
			unix.Major(uint64(st.Dev)), unix.Minor(uint64(st.Dev)), dir, typ)
	}
	refused := func(what string) string {
		return "state_dir: " + dir + " is on " + what + ", where locks and fsync can't be relied on; name a directory on a local disk"
	}
	for _, c := range []struct {
		magic  int64
		mounts string
		want   string
	}{
		{0xef53, "", ""},     // ext4
		{0x01021994, "", ""}, // tmpfs
		{0x6969, "", refused("NFS")},
		{0xfe534d42, "", refused("SMB2")},
		{0x0bd00bd0, "", refused("Lustre")},
		{fuseMagic, mount("fuse.sshfs"), refused("fuse.sshfs")},
		{fuseMagic, mount("virtiofs"), ""},
		{fuseMagic, "", refused("FUSE")},
		{fuseMagic, strings.ReplaceAll(mount("fuse.sshfs"), " - ", " "), refused("FUSE")},
		{fuseMagic, "1 2 - fuseblk\n" + strings.ReplaceAll(mount("fuse.x"), "22 1 ", "22 "), refused("FUSE")},
		{fuseMagic, mount("fuseblk"), ""},
	} {
		err := refuseNetworkFS(dir, c.magic, c.mounts)
		if got := fmt.Sprint(err); (err == nil && c.want != "") || (err != nil && got != c.want) {
			t.Errorf("%#x: %v, want %q", c.magic, err, c.want)
		}
	}
}

// TestOddDirectoryName: what SQLite's URIs give a meaning is only a name here.
func TestOddDirectoryName(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a?mode=ro#b%20c d")
	s := openDir(t, dir)
	if _, err := s.Commit(context.Background(), storetest.Submitted(storetest.NewJob(1, 1))); err != nil {
		t.Fatal(err)
	}
	if !exists(filepath.Join(dir, DatabaseName)) {
		t.Error("the database is somewhere else")
	}
}
