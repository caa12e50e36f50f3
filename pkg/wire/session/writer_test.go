package session

import (
	"bufio"
	"encoding/binary"
	"errors"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gangd/pkg/api"
)

// A writer writes once more for all that came while it wrote, and nothing after its end, for which
// the end waits.
func TestWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var writes atomic.Int32
		enter, leave := make(chan struct{}), make(chan struct{})
		w := &writer{write: func() error { writes.Add(1); enter <- struct{}{}; <-leave; return nil }}
		w.poke()
		synctest.Wait()
		if n := writes.Load(); n != 0 {
			t.Fatalf("%d writes before it has begun", n)
		}
		w.begin()
		<-enter
		for range 3 {
			w.poke()
		}
		leave <- struct{}{}
		<-enter
		ended := make(chan struct{})
		go func() { w.end(); close(ended) }()
		synctest.Wait()
		w.poke()
		select {
		case <-ended:
			t.Error("the end did not wait for a write")
		default:
		}
		leave <- struct{}{}
		<-ended
		w.poke()
		synctest.Wait()
		if n := writes.Load(); n != 2 {
			t.Errorf("%d writes, want the first and one for all that came meanwhile", n)
		}
	})
}

func TestWriterStopsAtAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		writes := 0
		w := &writer{}
		w.write = func() error { writes++; w.poke(); return errors.New("broken") }
		w.begin()
		synctest.Wait()
		w.poke()
		w.end()
		if writes != 1 {
			t.Errorf("%d writes, want none after the first has failed", writes)
		}
	})
}

// A node may send its hello without waiting for the answer to its request, a large one too.
func TestHelloWithTheRequest(t *testing.T) {
	for name, size := range map[string]int{"small": 0, "larger than what is buffered of a session": 2 * readBuffer} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, "n1")
			conn, err := net.Dial("unix", r.path)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			hello := []byte(`{"hello":{"protocol":` + strconv.Itoa(api.SessionProtocol) + `,"node":"n1","boot_id":"` + strings.Repeat("b", size) + `","state_id":"x"}}`)
			frame := []byte{0x81, 0x80 | 126}
			frame = binary.BigEndian.AppendUint16(frame, uint16(len(hello)))
			frame = append(append(frame, 0, 0, 0, 0), hello...) // a mask of zeros changes nothing
			request := "GET " + api.SessionPath + " HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
			if _, err := conn.Write(append([]byte(request), frame...)); err != nil {
				t.Fatal(err)
			}
			if h := get(t, "hello", r.handler.hellos); h.Node != "n1" || len(h.BootID) != size {
				t.Errorf("hello of node %q, with %d bytes more", h.Node, len(h.BootID))
			}
			in := bufio.NewReader(conn)
			for line := ""; line != "\r\n"; {
				if line, err = in.ReadString('\n'); err != nil {
					t.Fatal(err)
				}
			}
			if first, err := in.ReadByte(); err != nil || first != 0x81 {
				t.Errorf("the answer begins with %#x, %v", first, err)
			}
		})
	}
}

// A session at rest is one goroutine, and its request has returned.
func TestSessionAtRestIsOneGoroutine(t *testing.T) {
	r := newRig(t, "n1")
	greetRaw(t, r, "x")
	get(t, "hello", r.handler.hellos)
	all := make([]byte, 1<<20)
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		now := string(all[:runtime.Stack(all, true)])
		if strings.Contains(now, "session.(*hubSession).read") && !strings.Contains(now, "net/http.(*conn).serve") && !strings.Contains(now, "session.(*writer).run") {
			return
		}
	}
	t.Errorf("the request or a writer of a session at rest goes on:\n%s", all[:runtime.Stack(all, true)])
}
