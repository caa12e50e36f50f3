package pmi

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// step is the servers of all nodes, with the way between them that launchers and the client are.
type step struct {
	t       testing.TB
	servers []*Server
	mu      sync.Mutex
	at      int
	pieces  [][]byte
	aborts  []string
}

func newStep(t testing.TB, nodes ...[]int) *step {
	s := &step{t: t}
	for i := range nodes {
		s.servers = append(s.servers, New(Options{Job: "7.0", Nodes: nodes, Piece: 512, Fence: s.fence, Abort: s.abort}, i))
	}
	return s
}

func (s *step) fence(pieces [][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pieces = append(s.pieces, pieces...)
	if s.at++; s.at < len(s.servers) {
		return
	}
	s.at = 0
	for _, v := range s.servers {
		for _, p := range s.pieces {
			if len(p) > 512 {
				s.t.Errorf("a piece of %d bytes", len(p))
			}
			if err := v.Publish(p); err != nil {
				s.t.Error(err)
			}
		}
		go v.Passed()
	}
	s.pieces = nil
}

func (s *step) abort(task int, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.aborts = append(s.aborts, fmt.Sprint(task, " ", text))
}

// client is the library in a task.
type client struct {
	t testing.TB
	net.Conn
	r *bufio.Reader
}

func (s *step) task(node, number int) *client {
	f, env, err := s.servers[node].Task(number, 3)
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	if want := []string{"PMI_FD=3", fmt.Sprint("PMI_RANK=", number), fmt.Sprint("PMI_SIZE=", s.servers[0].size), "PMI_JOBID=7.0"}; !reflect.DeepEqual(env, want) {
		s.t.Errorf("%q, want %q", env, want)
	}
	c, err := net.FileConn(f)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	return &client{s.t, c, bufio.NewReader(c)}
}

// one asks in PMI-1.
func (c *client) one(ask string) string {
	c.t.Helper()
	fmt.Fprintf(c, "%s\n", ask)
	return c.hear()
}

func (c *client) hear() string {
	c.t.Helper()
	line, err := c.r.ReadString('\n')
	if err != nil {
		c.t.Errorf("no answer: %v", err)
	}
	return strings.TrimSuffix(line, "\n")
}

// two asks in PMI-2.
func (c *client) two(ask string) string {
	c.t.Helper()
	fmt.Fprintf(c, "%6d%s", len(ask), ask)
	var n int
	head := make([]byte, 6)
	if _, err := c.r.Read(head); err != nil {
		c.t.Errorf("no answer to %s: %v", ask, err)
	}
	fmt.Sscan(string(head), &n)
	b := make([]byte, n)
	for got := 0; got < n; {
		m, err := c.r.Read(b[got:])
		if err != nil {
			c.t.Errorf("half an answer to %s: %v", ask, err)
			break
		}
		got += m
	}
	return string(b)
}

// TestPMI1 is what MPICH asks, in its order.
func TestPMI1(t *testing.T) {
	s := newStep(t, []int{0, 1}, []int{2})
	var all sync.WaitGroup
	for number, node := range []int{0, 0, 1} {
		c := s.task(node, number)
		all.Go(func() {
			expect := func(ask, want string) {
				if got := c.one(ask); got != want {
					t.Errorf("task %d: %s: %q, want %q", number, ask, got, want)
				}
			}
			expect("cmd=init pmi_version=1 pmi_subversion=1", "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0")
			expect("cmd=get_maxes", "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024")
			expect("cmd=get_universe_size", "cmd=universe_size size=3")
			expect("cmd=get_appnum", "cmd=appnum appnum=0")
			expect("cmd=get_my_kvsname", "cmd=my_kvsname kvsname=7.0")
			expect("cmd=get kvsname=7.0 key=PMI_process_mapping", "cmd=get_result rc=0 msg=success value=(vector,(0,1,2),(1,1,1))")
			for round := range 3 {
				expect(fmt.Sprintf("cmd=put kvsname=7.0 key=card-%d value=%d/%s", number, round, strings.Repeat("x", 300)), "cmd=put_result rc=0 msg=success")
				expect(fmt.Sprintf("cmd=get kvsname=7.0 key=later-%d-%d", round, number), fmt.Sprintf("cmd=get_result rc=-1 msg=key_later-%d-%d_not_found value=unknown", round, number))
				expect("cmd=barrier_in", "cmd=barrier_out")
				for other := range 3 {
					expect(fmt.Sprintf("cmd=get kvsname=7.0 key=card-%d", other), fmt.Sprintf("cmd=get_result rc=0 msg=success value=%d/%s", round, strings.Repeat("x", 300)))
				}
				expect("cmd=barrier_in", "cmd=barrier_out")
			}
			expect("cmd=get kvsname=other key=card-0", "cmd=get_result rc=-1 msg=key_card-0_not_found value=unknown")
			expect("cmd=lookup_name service=a", "cmd=lookup_result rc=-1 msg=not_offered")
			expect("mcmd=spawn\nnprocs=1\nexecname=a\nendcmd", "cmd=spawn_result rc=-1 msg=not_offered")
			expect("cmd=put kvsname=7.0 key="+strings.Repeat("k", 65)+" value=1", "cmd=put_result rc=-1 msg=a_key_has_1_to_64_characters_and_a_value_up_to_1024")
			expect("cmd=finalize", "cmd=finalize_ack")
		})
	}
	all.Wait()
}

func TestPMI2(t *testing.T) {
	s := newStep(t, []int{0, 1}, []int{2, 3})
	var all sync.WaitGroup
	for number, node := range []int{0, 0, 1, 1} {
		c := s.task(node, number)
		all.Go(func() {
			if got := c.one("cmd=init pmi_version=2 pmi_subversion=0"); got != "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0" {
				t.Errorf("init: %q", got)
			}
			expect := func(ask, want string) {
				if got := c.two(ask); got != want {
					t.Errorf("task %d: %s: %q, want %q", number, ask, got, want)
				}
			}
			expect(fmt.Sprintf("cmd=fullinit;pmijobid=7.0;pmirank=%d;threaded=TRUE;thrid=4;", number),
				fmt.Sprintf("cmd=fullinit-response;thrid=4;pmi-version=2;pmi-subversion=0;rank=%d;size=4;appnum=0;debugged=FALSE;pmiverbose=FALSE;rc=0;", number))
			expect("cmd=job-getid;", "cmd=job-getid-response;jobid=7.0;rc=0;")
			expect("cmd=info-getjobattr;key=PMI_process_mapping;", "cmd=info-getjobattr-response;found=TRUE;value=(vector,(0,2,2));rc=0;")
			expect("cmd=info-getjobattr;key=universeSize;", "cmd=info-getjobattr-response;found=TRUE;value=4;rc=0;")
			if number%2 == 0 {
				expect(fmt.Sprintf("cmd=info-putnodeattr;key=seg;value=%d;", node), "cmd=info-putnodeattr-response;rc=0;")
			}
			expect("cmd=info-getnodeattr;key=seg;wait=TRUE;", fmt.Sprintf("cmd=info-getnodeattr-response;found=TRUE;value=%d;rc=0;", node))
			expect("cmd=info-getnodeattr;key=none;wait=FALSE;", "cmd=info-getnodeattr-response;found=FALSE;rc=0;")
			expect(fmt.Sprintf("cmd=kvs-put;key=a%d;value=;;x;;=%d;;;", number, number), "cmd=kvs-put-response;rc=0;")
			expect("cmd=kvs-fence;", "cmd=kvs-fence-response;rc=0;")
			for other := range 4 {
				expect(fmt.Sprintf("cmd=kvs-get;jobid=7.0;srcid=-1;key=a%d;", other), fmt.Sprintf("cmd=kvs-get-response;found=TRUE;value=;;x;;=%d;;;rc=0;", other))
			}
			expect("cmd=kvs-get;jobid=7.0;srcid=-1;key=b;", "cmd=kvs-get-response;found=FALSE;rc=0;")
			expect("cmd=spawn;ncmds=1;", "cmd=spawn-response;rc=-1;errmsg=not offered;")
			expect("cmd=finalize;", "cmd=finalize-response;rc=0;")
		})
	}
	all.Wait()
}

func TestAbort(t *testing.T) {
	s := newStep(t, []int{0, 1})
	one, two := s.task(0, 0), s.task(0, 1)
	one.one("cmd=init pmi_version=1 pmi_subversion=1")
	fmt.Fprint(one, "cmd=abort exitcode=3\n")
	if got := one.one("cmd=get_appnum"); got != "cmd=appnum appnum=0" { // it was heard
		t.Error(got)
	}
	two.one("cmd=init pmi_version=2 pmi_subversion=0")
	ask := "cmd=abort;isworld=TRUE;msg=out of luck;"
	fmt.Fprintf(two, "%6d%s", len(ask), ask)
	two.two("cmd=job-getid;")
	if want := []string{"0 exit code 3", "1 out of luck"}; !reflect.DeepEqual(s.aborts, want) {
		t.Errorf("%q, want %q", s.aborts, want)
	}
}

func TestMapping(t *testing.T) {
	for want, nodes := range map[string][][]int{
		"(vector,(0,4,2))":                 {{0, 1}, {2, 3}, {4, 5}, {6, 7}},
		"(vector,(0,1,3),(1,2,1),(3,1,2))": {{0, 1, 2}, {3}, {4}, {5, 6}},
		"":                                 {{0, 2}, {1, 3}},
	} {
		if got := mapping(nodes); got != want {
			t.Errorf("%v: %s, want %s", nodes, got, want)
		}
	}
}

// TestWhatIsHeldIsBounded: also when it comes from elsewhere.
func TestWhatIsHeldIsBounded(t *testing.T) {
	s := New(Options{Nodes: [][]int{{0}}}, 0)
	var err error
	n := 0
	for ; err == nil; n++ {
		err = s.Publish(pack(map[string]string{fmt.Sprint(n): strings.Repeat("x", maxValue)}, 1<<20)[0])
	}
	if n < MaxStore/(maxValue+maxKey) || n > MaxStore/maxValue+1 {
		t.Errorf("%d values of %d bytes: %v", n, maxValue, err)
	}
	if err := s.putNode("k", "v"+strings.Repeat("x", maxValue-1)); err == nil {
		t.Error("an attribute of the node is beyond it")
	}
}

// FuzzServe: whatever a task writes, the server ends with it.
func FuzzServe(f *testing.F) {
	f.Add([]byte("cmd=init pmi_version=1 pmi_subversion=1\ncmd=put kvsname=7.0 key=a value=b\ncmd=barrier_in\ncmd=get kvsname=7.0 key=a\ncmd=finalize\n"))
	f.Add([]byte("cmd=init pmi_version=2 pmi_subversion=0\n    17cmd=kvs-fence;a=;;    -1"))
	f.Add([]byte("cmd=init pmi_version=2 pmi_subversion=0\n999999cmd"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := newStep(t, []int{0})
		synctest.Test(t, func(*testing.T) {
			var out bytes.Buffer
			s.servers[0].serve(0, struct {
				*bytes.Reader
				*writer
			}{bytes.NewReader(b), &writer{b: &out}})
		})
	})
}

type writer struct {
	mu sync.Mutex
	b  *bytes.Buffer
}

func (w *writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}
