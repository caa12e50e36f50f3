package sqlitestore

import (
	"context"
	"testing"

	"gangd/pkg/core/gang"
)

func commitJob(t *testing.T, s *Store, next int64) {
	t.Helper()
	if _, err := s.Commit(context.Background(), &gang.Changes{NextID: next}); err != nil {
		t.Fatal(err)
	}
}

func TestMemoryOutlivesItsStores(t *testing.T) {
	ctx := context.Background()
	m, err := NewMemory(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	s, err := m.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	commitJob(t, s, 2)
	old, err := m.Copy(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	commitJob(t, s, 3)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		m       *Memory
		lineage uint64
	}{{m, 2}, {old, 1}} {
		s, err := c.m.Open(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Lineage(); got != c.lineage {
			t.Errorf("lineage %d, want %d", got, c.lineage)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMemoryEnds: with its last connection a database in memory is gone.
func TestMemoryEnds(t *testing.T) {
	ctx := context.Background()
	m, err := NewMemory(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.keep.exec("CREATE TABLE x (y)"); err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	w, err := connect(ctx, m.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	if n, err := w.Ints("SELECT count(*) FROM sqlite_schema", 1); err != nil || n[0] != 0 {
		t.Errorf("%v, %v", n, err)
	}
}

func BenchmarkOpenMemory(b *testing.B) {
	ctx := context.Background()
	for b.Loop() {
		s, err := OpenMemory(ctx)
		if err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
}
