package process

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/simccl/simccl/internal/fail"
)

// OpenSoon opens an input file that must deliver data within a time limit. A pipe without a writer, and a
// kernel file that waits for events (/proc/kmsg), are refused after 10 s without the first data or 30 s
// without further data. Pipes of the shell (<(zcat x), /dev/stdin) may take as long as their writer.
func (p *Process) OpenSoon(name string) (io.ReadCloser, error) {
	const first, later = 10 * time.Second, 30 * time.Second
	return p.openWithin(name, first, later)
}

func (p *Process) openWithin(name string, first, later time.Duration) (io.ReadCloser, error) {
	path := p.Path(name)
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case info.Mode().IsRegular() && info.Size() > 0, strings.HasPrefix(path, "/dev/fd/"),
		strings.HasPrefix(path, "/proc/self/fd/"), path == "/dev/stdin":
		return os.Open(path)
	}
	s := &slow{p: p, wait: first, later: later, pieces: make(chan piece), stop: make(chan struct{})}
	go s.pump(path)
	return s, nil
}

// slow reads a file that may never deliver data, in a goroutine; one that is blocked in the kernel is
// abandoned.
type slow struct {
	p           *Process
	wait, later time.Duration
	pieces      chan piece
	stop        chan struct{}
	left        piece
}

// piece is the result of one read.
type piece struct {
	b   []byte
	err error
}

func (s *slow) pump(path string) {
	f, err := os.Open(path)
	if err != nil {
		s.give(piece{err: err})
		return
	}
	defer f.Close()
	for {
		b := make([]byte, 64<<10)
		n, err := f.Read(b)
		if !s.give(piece{b[:n], err}) || err != nil {
			return
		}
	}
}

// give hands a piece over, unless the reader has closed.
func (s *slow) give(x piece) bool {
	select {
	case s.pieces <- x:
		return true
	case <-s.stop:
		return false
	}
}

// Read returns the data that has arrived; it fails if none arrives within the time limit or the command is
// interrupted.
func (s *slow) Read(b []byte) (int, error) {
	if len(s.left.b) == 0 && s.left.err == nil {
		timer := time.NewTimer(s.wait)
		defer timer.Stop()
		select {
		case s.left = <-s.pieces:
			s.wait = s.later
		case <-s.p.Context().Done():
			return 0, s.p.Context().Err()
		case <-timer.C:
			return 0,
				fail.Input(fmt.Errorf("nothing came from it in %v; give a file, or a pipe that is written to",
					s.wait))
		}
	}
	n := copy(b, s.left.b)
	if s.left.b = s.left.b[n:]; n > 0 {
		return n, nil
	}
	return 0, s.left.err
}

// Close stops the reading goroutine.
func (s *slow) Close() error {
	close(s.stop)
	return nil
}
