package intercept

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/simccl/simccl/intercept/collector"
)

// door says whose a connection to the collector is: the process that the kernel names
// (SO_PEERCRED, unix(7)), not the one that a program claims to be.
//
// The collector opens no process's memory. A program opens its own (/proc/self/mem) with its own
// rights, and sends the descriptor with its greeting: so a program has the collector read and write what it
// could itself, whatever rights the collector has, and whichever process has that id next.
type door struct {
	shows bool // programs show their memory, and are descendants of this process
	stop  chan struct{}
	mu    sync.Mutex
	own   []int // children that exec.Cmd waits for
}

// prSetChildSubreaper is PR_SET_CHILD_SUBREAPER (prctl(2)).
const prSetChildSubreaper = 36

// newDoor prepares for programs. Where they show their memory, processes whose parents have ended
// become children of this one, so that descendants are known as such.
func newDoor(shows bool) (*door, error) {
	d := &door{shows: shows, stop: make(chan struct{})}
	if shows {
		adopt(1)
		go d.reap()
	}
	return d, nil
}

// adopt has orphans become children of this process (1), or not (0). A kernel that refuses it
// leaves them init's, and they are refused by name.
func adopt(on uintptr) { _, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, on, 0) }

func (d *door) close() {
	close(d.stop)
	if d.shows {
		adopt(0)
	}
}

// start starts a command whose end its exec.Cmd learns.
func (d *door) start(c *exec.Cmd) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	err := c.Start()
	if err == nil {
		d.own = append(d.own, c.Process.Pid)
	}
	return err
}

// reap waits for adopted processes that have ended, as init would: some programs wait for that.
func (d *door) reap() {
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-d.stop:
			return
		case <-tick.C:
		}
		lists, _ := filepath.Glob("/proc/self/task/*/children")
		d.mu.Lock()
		for _, list := range lists {
			b, _ := os.ReadFile(list)
			for _, s := range strings.Fields(string(b)) {
				if pid, err := strconv.Atoi(s); err == nil && !slices.Contains(d.own, pid) {
					_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
				}
			}
		}
		d.mu.Unlock()
	}
}

// know reads a connection's greeting into hello, and returns whose it is. The error is that of the
// connection.
func (d *door) know(c net.Conn, hello []byte) (*collector.Peer, error) {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return nil, fmt.Errorf("a connection of %T", c)
	}
	shown, err := receive(u, hello)
	if err != nil {
		return nil, err
	}
	if !d.shows && shown != nil {
		shown.Close()
		shown = nil
	}
	pid, err := peerOf(u)
	if err == nil {
		said, whole := collector.Said(hello)
		err = d.check(pid, said, whole, shown)
	}
	p := &collector.Peer{PID: pid, Refuse: err}
	switch {
	case shown == nil:
	case err != nil:
		shown.Close()
	default:
		p.Memory = shown
	}
	return p, nil
}

// receive fills b, and returns the file that came with its first bytes, if any. More of them are
// dropped by the kernel, as are those that come later.
func receive(c *net.UnixConn, b []byte) (*os.File, error) {
	oob := make([]byte, syscall.CmsgSpace(4))
	n, oobn, _, _, err := c.ReadMsgUnix(b, oob)
	var fds []int
	if list, bad := syscall.ParseSocketControlMessage(oob[:oobn]); bad == nil {
		for i := range list {
			if got, bad := syscall.ParseUnixRights(&list[i]); bad == nil {
				fds = append(fds, got...)
			}
		}
	}
	var f *os.File
	for _, fd := range fds {
		if f != nil {
			f.Close()
		}
		f = os.NewFile(uintptr(fd), "memory")
	}
	if err == nil {
		_, err = io.ReadFull(c, b[n:])
	}
	if err != nil && f != nil {
		f.Close()
		f = nil
	}
	return f, err
}

// peerOf is the process that has made a connection, as this namespace numbers it.
func peerOf(c *net.UnixConn) (int, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *syscall.Ucred
	var bad error
	err = raw.Control(func(fd uintptr) {
		cred, bad = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if err = errors.Join(err, bad); err != nil {
		return 0, err
	}
	if cred.Pid <= 0 {
		return 0, errors.New("it is in a namespace of processes that simccl does not see")
	}
	return int(cred.Pid), nil
}

// check says why a process has nothing to ask; whole: the connection is that of the process, with which it
// shows its memory.
func (d *door) check(pid, said int, whole bool, shown *os.File) error {
	if pid == os.Getpid() {
		return fmt.Errorf("process %d is simccl itself", pid)
	}
	numbers, err := numbersOf(pid)
	if err != nil {
		return err
	}
	if last := numbers[len(numbers)-1]; said != last {
		return fmt.Errorf("process %d says that it is process %d", last, said)
	}
	if !d.shows {
		return nil
	}
	if err := descends(pid); err != nil {
		return err
	}
	if !whole { // a thread of one that has
		return nil
	}
	if shown == nil {
		return fmt.Errorf("process %d has not shown its memory (/proc/self/mem), in which --data moves "+
			"data; it may not open it, or its libraries are of another simccl", pid)
	}
	link, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", shown.Fd()))
	if err != nil {
		return err
	}
	for _, n := range numbers {
		if strings.HasSuffix(link, fmt.Sprintf("/%d/mem", n)) && isProc(shown) {
			return nil
		}
	}
	return fmt.Errorf("process %d shows %s for its memory", pid, link)
}

// isProc reports whether a file is one of proc(5).
func isProc(f *os.File) bool {
	const procSuperMagic = 0x9fa0
	var s syscall.Statfs_t
	return syscall.Fstatfs(int(f.Fd()), &s) == nil && s.Type == procSuperMagic
}

// numbersOf are the numbers of a process: in this namespace first, in its own last.
func numbersOf(pid int) ([]int, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return nil, fmt.Errorf("process %d has ended: %w", pid, err)
	}
	for line := range bytes.Lines(b) {
		rest, ok := bytes.CutPrefix(line, []byte("NSpid:"))
		if !ok {
			continue
		}
		var out []int
		for _, s := range strings.Fields(string(rest)) {
			if n, err := strconv.Atoi(s); err == nil {
				out = append(out, n)
			}
		}
		if len(out) > 0 {
			return out, nil
		}
	}
	return []int{pid}, nil // a kernel without namespaces of processes
}

// descends fails unless this process is among a process's ancestors.
func descends(pid int) error {
	const deepest = 4096
	for at, i := pid, 0; i < deepest; i++ {
		parent, err := parentOf(at)
		switch {
		case err != nil:
			return fmt.Errorf("process %d: its ancestors are not known: %w", pid, err)
		case parent == os.Getpid():
			return nil
		case parent <= 1:
			return fmt.Errorf("process %d is no descendant of simccl: under --data the command itself has "+
				"to start its ranks (mpirun, torchrun), not a daemon (srun, a container's)", pid)
		}
		at = parent
	}
	return fmt.Errorf("process %d has more than %d ancestors", pid, deepest)
}

// parentOf is a process's parent (field 4 of /proc/PID/stat, behind the name in parentheses).
func parentOf(pid int) (int, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(fields) < 2 {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	return strconv.Atoi(fields[1])
}
