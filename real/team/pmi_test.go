package team

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// launcher is a process manager of n ranks that implements PMI-1 as RFC 13 has it.
type launcher struct {
	t       *testing.T
	mu      sync.Mutex
	kvs     map[string]string
	waiting []net.Conn
	n       int
	final   int
	spoil   string // answers this command with a failure
}

func (l *launcher) serve(c net.Conn) {
	defer c.Close()
	in := bufio.NewScanner(c)
	for in.Scan() {
		f := fields(in.Text())
		if f["cmd"] == l.spoil {
			fmt.Fprintln(c, "cmd=unknown rc=-1 msg=spoiled answer")
			continue
		}
		l.answer(c, f)
	}
}

func (l *launcher) answer(c net.Conn, f map[string]string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch f["cmd"] {
	case "init":
		fmt.Fprintln(c, "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1")
	case "get_my_kvsname":
		fmt.Fprintln(c, "cmd=my_kvsname rc=0 kvsname=kvs_17_0")
	case "put":
		l.kvs[f["kvsname"]+" "+f["key"]] = f["value"]
		fmt.Fprintln(c, "cmd=put_result rc=0 msg=success")
	case "barrier_in":
		if l.waiting = append(l.waiting, c); len(l.waiting) == l.n {
			for _, w := range l.waiting {
				fmt.Fprintln(w, "cmd=barrier_out rc=0")
			}
			l.waiting = nil
		}
	case "get":
		if v, ok := l.kvs[f["kvsname"]+" "+f["key"]]; ok {
			fmt.Fprintln(c, "cmd=get_result rc=0 msg=success value="+v)
			return
		}
		fmt.Fprintln(c, "cmd=get_result rc=-1 msg=no such key value=unknown")
	case "finalize":
		l.final++
		fmt.Fprintln(c, "cmd=finalize_ack rc=0")
	default:
		l.t.Errorf("asked for %q", f)
	}
}

// pair is a connection as launchers hand it down: a pair of sockets, one end
// by its number.
func pair(t *testing.T, l *launcher) net.Conn {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	here, err := openPMI(fds[0])
	if err != nil {
		t.Fatal(err)
	}
	there, err := openPMI(fds[1])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { here.Close() })
	go l.serve(there)
	return here
}

func TestEveryRankLearnsTheWord(t *testing.T) {
	const n = 5
	l := &launcher{t: t, kvs: map[string]string{}, n: n}
	const word = "simccl1/[fd00::2%eth0]:4711/00ff"
	got, errs := make([]string, n), make([]error, n)
	var wg sync.WaitGroup
	for r := range n {
		c := pair(t, l)
		wg.Go(func() {
			mine := ""
			if r == 0 {
				mine = word
			}
			got[r], errs[r] = sharePMI(c, r, mine)
		})
	}
	wg.Wait()
	for r := range n {
		if errs[r] != nil || got[r] != word {
			t.Errorf("rank %d: %q, %v", r, got[r], errs[r])
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.final != n {
		t.Errorf("%d of %d ranks said that they are done", l.final, n)
	}
}

// What a launcher refuses, and a launcher that goes, is an error that says at
// which command.
func TestLaunchersThatDoNot(t *testing.T) {
	for _, spoil := range []string{"init", "get_my_kvsname", "put", "barrier_in", "get", "finalize"} {
		l := &launcher{t: t, kvs: map[string]string{}, n: 1, spoil: spoil}
		if _, err := sharePMI(pair(t, l), 0, "x"); err == nil || !strings.Contains(err.Error(), "cmd="+spoil+
			": answered") {
			t.Errorf("%s refused: %v", spoil, err)
		}
	}
	here, there := net.Pipe()
	there.Close()
	if _, err := sharePMI(here, 0, "x"); err == nil {
		t.Error("no error of a launcher that is gone")
	}
	if _, err := openPMI(9999); err == nil || !strings.Contains(err.Error(), "PMI_FD=9999") {
		t.Errorf("a number that is no file: %v", err)
	}
}
