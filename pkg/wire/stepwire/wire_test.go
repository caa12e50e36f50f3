package stepwire

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"
)

// memory is a connection whose peer has sent all it ever will.
type memory struct {
	net.Conn
	r io.Reader
	w bytes.Buffer
}

func (m *memory) Read(p []byte) (int, error)      { return m.r.Read(p) }
func (m *memory) Write(p []byte) (int, error)     { return m.w.Write(p) }
func (m *memory) SetReadDeadline(time.Time) error { return nil }

func TestFramesComeBack(t *testing.T) {
	m := &memory{}
	c := New(m)
	long := bytes.Repeat([]byte("x"), MaxData)
	for i, d := range [][]byte{nil, []byte("a"), long} {
		if err := c.Send(Output, uint32(i), d); err != nil {
			t.Fatal(err)
		}
	}
	back := New(&memory{r: &m.w})
	for i, want := range [][]byte{nil, []byte("a"), long} {
		f, err := back.Next()
		if err != nil || f.Type != Output || f.Task != uint32(i) || !bytes.Equal(f.Data, want) {
			t.Errorf("frame %d: %q of task %d, %d bytes, %v", i, f.Type, f.Task, len(f.Data), err)
		}
	}
	if _, err := back.Next(); err != io.EOF {
		t.Errorf("after the last: %v", err)
	}
}

// FuzzFrames: whatever comes in is a frame within its bounds or an error.
func FuzzFrames(f *testing.F) {
	f.Add([]byte{'o', 0, 0, 0, 1, 0, 0, 0, 2, 'h', 'i'})
	f.Add([]byte{'H', 0, 0, 0, 0, 0, 0, 0, 2, '{', '}'})
	f.Add([]byte{'o', 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = New(&memory{r: bytes.NewReader(b)}).Greet()
		c := New(&memory{r: bytes.NewReader(b)})
		for {
			fr, err := c.Next()
			if err != nil {
				return
			}
			if fr.Type != Start && len(fr.Data) > MaxData {
				t.Fatalf("%d bytes of %q", len(fr.Data), fr.Type)
			}
		}
	})
}

func TestLabel(t *testing.T) {
	for _, c := range []struct {
		task       uint32
		tasks      int
		data, want string
	}{{3, 12, "a\nb", " 3: a\n 3: b\n"}, {0, 1, "\n", "0: \n"}, {5, 6, "", ""}} {
		if got := string(Label(c.task, c.tasks, []byte(c.data))); got != c.want {
			t.Errorf("%q: %q, want %q", c.data, got, c.want)
		}
	}
}
