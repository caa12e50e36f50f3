package stacks

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"gangd/pkg/api"
)

func TestFrame(t *testing.T) {
	for _, c := range []struct{ function, file, want string }{
		{"all_reduce", "/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py", "all_reduce (distributed_c10d.py)"},
		{"<module>", "/home/ada/train.py", "<module> (train.py)"},
		{"<lambda>", "<string>", "<lambda> (<string>)"},
		{"call", "/tmp/torchinductor_ada/ab/cabcdef0123456789.py", "call (#.py)"},
		{"<cell line: 1>", "/tmp/ipykernel_48122/1234567890.py", "<cell line: 1> (#.py)"},
		{"gloo::transport::tcp::UnboundBuffer::waitRecv(int*, std::chrono::duration<long, std::ratio<1l, 1000l> >)", "", "gloo::transport::tcp::UnboundBuffer::waitRecv"},
		{"std::vector<int, std::allocator<int> >::push_back(int&&)", "", "std::vector::push_back"},
		{"__futex_abstimed_wait_common64.part.0", "", "__futex_abstimed_wait_common64"},
		{"pthread_cond_wait@@GLIBC_2.3.2", "", "pthread_cond_wait"},
		{"ncclGroupEnd+0x1f", "", "ncclGroupEnd"},
		{"", "", "?"},
		{"a\x1b[31mb", "c\n.py", "a?[31mb (c?.py)"},
	} {
		if got := Frame(c.function, c.file); got != c.want {
			t.Errorf("%q: %q, want %q", c.function, got, c.want)
		}
	}
}

const pySpyText = `Process 4711: /usr/bin/python3 train.py
Python v3.11.2 (/usr/bin/python3.11)

Thread 4711 (idle): "MainThread"
    all_reduce (torch/distributed/distributed_c10d.py:1320)
    <module> (train.py:12)
Thread 4720 (active+gil): "log (writer)"
    wait (threading.py:324)
    run (threading.py:982)
Thread 0x7F2A (idle)
    accept (socket.py:294)
`

const faultText = `noise before
Thread 0x00007f2a11fff700 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 324 in wait
  File "/usr/lib/python3.11/threading.py", line 982 in run

Current thread 0x00007f2a3a1c5740 (most recent call first):
  File "/srv/a, b/train.py", line 5 in pause
  File "/srv/a, b/train.py", line 12 in <module>
`

const gdbText = `[New LWP 12]
Thread 2 (Thread 0x7f2a (LWP 12) "gloo"):
#0  0x00007f2a3a2b5e36 in epoll_wait (epfd=4, events=0x7f) at ../sysdeps/unix/sysv/linux/epoll_wait.c:30
#1  0x00007f2a3a in gloo::Loop::run() () from /usr/lib/libgloo.so.0

Thread 1 (Thread 0x7f2a (LWP 11) "python3"):
#0  futex_wait (a=1) at futex.c:1
#1  0x00007f in main ()
`

const euText = `PID 11 - process
TID 11:
#0  0x00007f2a3a2b5e36 __futex_abstimed_wait_common
#1  0x00007f2a3a2b8480 pthread_cond_wait@@GLIBC_2.3.2
#2  0x00000000004010aa
TID 12:
#0  0x00007f2a3a2b5e36 epoll_wait
`

func TestTexts(t *testing.T) {
	show := func(all []Thread) (out []string) {
		for _, th := range all {
			s := ""
			if th.Main {
				s = "*"
			}
			out = append(out, s+strings.Join(th.Frames, " < "))
		}
		return out
	}
	for name, c := range map[string]struct{ got, want []string }{
		"py-spy":       {show(PySpy(pySpyText)), []string{"*all_reduce (distributed_c10d.py) < <module> (train.py)", "wait (threading.py) < run (threading.py)", "accept (socket.py)"}},
		"faulthandler": {show(Faulthandler(faultText)), []string{"wait (threading.py) < run (threading.py)", "*pause (train.py) < <module> (train.py)"}},
		"gdb":          {show(Native(gdbText, 11)), []string{"epoll_wait < gloo::Loop::run", "*futex_wait < main"}},
		"eu-stack":     {show(Native(euText, 11)), []string{"*__futex_abstimed_wait_common < pthread_cond_wait", "epoll_wait"}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", name, c.got, c.want)
		}
	}
	if all := PySpy(pySpyText); all[0].TID != 4711 || all[2].TID != 0 || !slices.Equal(all[0].Lines, []int{1320, 12}) {
		t.Error(all)
	}
	if all := Faulthandler(faultText); !slices.Equal(all[0].Lines, []int{324, 982}) {
		t.Error(all)
	}
}

// FuzzTexts: whatever a process makes a debugger write, the frames are bounded and harmless.
func FuzzTexts(f *testing.F) {
	for _, s := range []string{pySpyText, faultText, gdbText, euText, "Thread 1 (idle)\n    x (y:1)\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, all := range [][]Thread{PySpy(text), Faulthandler(text), Native(text, 11)} {
			if len(all) > 256 {
				t.Fatal(len(all))
			}
			for _, th := range all {
				if len(th.Frames) > api.MaxStackFrames || len(th.Lines) != len(th.Frames) {
					t.Fatal(len(th.Frames))
				}
				for _, fr := range th.Frames {
					if len(fr) > api.MaxStackFrame || fr == "" || !utf8.ValidString(fr) || strings.ContainsAny(fr, "\x00\x1b\n\r\x7f") {
						t.Fatalf("%q", fr)
					}
				}
			}
		}
	})
}
