package main

import (
	"fmt"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/simccl/simccl/app/cli"
)

// TestInterruptedRankIsNamedByAll: a signal to one rank ends all others, each
// with that rank's number and the signal, without a word of connections that
// broke or of a defect. A rank is lost 5 s after its last sign of life; the
// others do not wait for that.
func TestInterruptedRankIsNamedByAll(t *testing.T) {
	for _, c := range []struct {
		victim int
		signal syscall.Signal
		name   string
	}{{2, syscall.SIGINT, "SIGINT"}, {0, syscall.SIGTERM, "SIGTERM"}} {
		t.Run(fmt.Sprint(c.name, " to rank ", c.victim), func(t *testing.T) {
			all := processes(t, 4, "bench", "all_reduce", "--backend", "sockets", "-b", "64K", "-e", "64K",
				"-n", "1000000")
			for end := time.Now().Add(60 * time.Second); !strings.Contains(all[0].out.String(),
				"Using devices"); time.Sleep(20 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("the ranks have not met: %s", all[0].err.String())
				}
			}
			if err := all[c.victim].Process.Signal(c.signal); err != nil {
				t.Fatal(err)
			}
			for r, p := range all {
				err := p.wait(t, 60*time.Second)
				if r == c.victim {
					if err == nil {
						t.Error("the interrupted rank ends with status 0")
					}
					continue
				}
				want := fmt.Sprintf("simccl: rank %d was interrupted (%s)\n", c.victim, c.name)
				if got := p.err.String(); p.ProcessState.ExitCode() != cli.StatusNCCL || got != want {
					t.Errorf("rank %d ends with %v and says %q, want %q", r, err, got, want)
				}
			}
		})
	}
}

// TestRootSurvivesStrangersWithoutEnd: connections that use up rank 0's file
// descriptors, and stay, do not keep rank 1 from joining.
func TestRootSurvivesStrangersWithoutEnd(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	root := fmt.Sprint("127.0.0.1:", freePort(t))
	start := func(rank int, limit string) *rankProcess {
		args := fmt.Sprintf("ulimit -n %s && exec simccl bench all_reduce --backend sockets --rank %d "+
			"--nranks 2 --root-address %s --sizes 8 -n 1 -w 0", limit, rank, root)
		p := &rankProcess{Cmd: exec.Command(sh, "-c", args), ended: make(chan error, 1)}
		p.Stdout, p.Stderr = &p.out, &p.err
		p.Env = append(p.Environ(), "SIMCCL_SECRET=test")
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Process.Kill() })
		go func() { p.ended <- p.Wait() }()
		return p
	}
	first := start(0, "64")
	var strangers []net.Conn
	for end := time.Now().Add(60 * time.Second); len(strangers) < 120; {
		c, err := net.Dial("tcp", root)
		if err == nil {
			strangers = append(strangers, c)
			defer c.Close()
			continue
		}
		if time.Now().After(end) {
			t.Fatalf("%d connections, then %v: %s", len(strangers), err, first.err.String())
		}
		time.Sleep(20 * time.Millisecond) // it does not listen yet
	}
	// The root has run out of descriptors once it drops an unknown peer.
	if _, err := strangers[0].Read(make([]byte, 1)); err == nil {
		t.Fatal("a stranger is answered")
	}
	second := start(1, "1024")
	for r, p := range []*rankProcess{first, second} {
		if err := p.wait(t, 60*time.Second); err != nil {
			t.Errorf("rank %d: %v\n%s", r, err, p.err.String())
		}
	}
}
