// Command sum is a small distributed program for demonstrations and tests: the ranks of a
// gang meet at MASTER_ADDR:MASTER_PORT and agree on a sum, step by step. Rank 0 keeps the
// number of the last finished step in a checkpoint file, from which a restart goes on.
//
//	sum [-steps 10] [-checkpoint FILE] [-pause 50ms] [-fail-rank R -fail-step S]
//
// It knows nothing of gangd: only the environment that torch.distributed uses too (RANK,
// WORLD_SIZE, MASTER_ADDR, MASTER_PORT). -fail-rank ends that rank with status 1 at step
// S of the first attempt, to show what happens then.
package main

import (
	"encoding/binary"
	"flag"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// joinPatience bounds how long a rank looks for its peers: the start barrier has opened
// for all of them at once, so this is for a slow machine, not for a slow queue.
const joinPatience = 20 * time.Second

func main() {
	steps := flag.Int("steps", 10, "steps to do")
	checkpoint := flag.String("checkpoint", "", "file with the number of the last finished step")
	pause := flag.Duration("pause", 50*time.Millisecond, "how long a step takes")
	failRank := flag.Int("fail-rank", -1, "rank that fails in the first attempt")
	failStep := flag.Int("fail-step", 5, "step at which it does")
	flag.Parse()

	g, err := join()
	if err != nil {
		die(err)
	}
	first := 1
	if b, err := os.ReadFile(*checkpoint); err == nil {
		if first, err = strconv.Atoi(strings.TrimSpace(string(b))); err != nil {
			die(fmt.Errorf("checkpoint %s: %w", *checkpoint, err))
		}
		first++
		fmt.Printf("rank %d: continues at step %d\n", g.rank, first)
	}
	for step := first; step <= *steps; step++ {
		if g.rank == *failRank && step == *failStep && os.Getenv("GANG_RESTART_COUNT") == "0" {
			fmt.Printf("rank %d: fails at step %d\n", g.rank, step)
			os.Exit(1)
		}
		time.Sleep(*pause)
		got, err := g.sum(uint64(g.rank+1) * uint64(step))
		if err != nil {
			die(fmt.Errorf("rank %d, step %d: %w", g.rank, step, err))
		}
		want := uint64(step) * uint64(g.size) * uint64(g.size+1) / 2
		if got != want {
			die(fmt.Errorf("rank %d, step %d: the sum is %d, not %d", g.rank, step, got, want))
		}
		if g.rank == 0 && *checkpoint != "" {
			if err := keep(*checkpoint, step); err != nil {
				die(err)
			}
		}
		if step == *steps {
			fmt.Printf("rank %d of %d on %s: step %d, all agree on %d\n", g.rank, g.size, os.Getenv("SLURMD_NODENAME"), step, got)
		}
	}
}

func die(err error) {
	fmt.Fprintln(os.Stderr, "sum:", err)
	os.Exit(1)
}

func keep(path string, step int) error {
	if err := os.WriteFile(path+".new", []byte(strconv.Itoa(step)+"\n"), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// group is this rank's side of the gang: rank 0 has a connection to each other rank, the
// others one to rank 0.
type group struct {
	rank, size int
	peers      []net.Conn
}

func join() (*group, error) {
	g := &group{}
	var err error
	if g.rank, err = number("RANK"); err != nil {
		return nil, err
	}
	if g.size, err = number("WORLD_SIZE"); err != nil {
		return nil, err
	}
	if g.size == 1 {
		return g, nil
	}
	addr := net.JoinHostPort(os.Getenv("MASTER_ADDR"), os.Getenv("MASTER_PORT"))
	if g.rank == 0 {
		return g, g.accept(addr)
	}
	return g, g.dial(addr)
}

func number(name string) (int, error) {
	n, err := strconv.Atoi(os.Getenv(name))
	if err != nil {
		return 0, fmt.Errorf("%s=%q is not a number: run this as a gang", name, os.Getenv(name))
	}
	return n, nil
}

func (g *group) accept(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	defer l.Close()
	if err := l.(*net.TCPListener).SetDeadline(time.Now().Add(joinPatience)); err != nil {
		return err
	}
	for len(g.peers) < g.size-1 {
		c, err := l.Accept()
		if err != nil {
			return fmt.Errorf("%d of %d ranks came: %w", len(g.peers)+1, g.size, err)
		}
		g.peers = append(g.peers, c)
	}
	return nil
}

func (g *group) dial(addr string) error {
	for until := time.Now().Add(joinPatience); ; time.Sleep(5 * time.Millisecond) {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			g.peers = []net.Conn{c}
			return nil
		}
		if time.Now().After(until) {
			return fmt.Errorf("rank 0 did not answer: %w", err)
		}
	}
}

// sum adds the values of all ranks: rank 0 gathers and tells.
func (g *group) sum(v uint64) (uint64, error) {
	if g.rank > 0 {
		if err := binary.Write(g.peers[0], binary.BigEndian, v); err != nil {
			return 0, err
		}
		err := binary.Read(g.peers[0], binary.BigEndian, &v)
		return v, err
	}
	for _, c := range g.peers {
		var x uint64
		if err := binary.Read(c, binary.BigEndian, &x); err != nil {
			return 0, err
		}
		v += x
	}
	for _, c := range g.peers {
		if err := binary.Write(c, binary.BigEndian, v); err != nil {
			return 0, err
		}
	}
	return v, nil
}
