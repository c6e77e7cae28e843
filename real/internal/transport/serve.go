package transport

import (
	"container/list"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"
)

// maxUnproven is the number of unauthenticated connections that a listener keeps, in addition to the expected
// ones, if file descriptors are plentiful.
const maxUnproven = 128

// MaxUnproven returns that number for this process: at most a quarter of its file descriptors, so that enough
// remain for other uses.
func MaxUnproven() int {
	if n := descriptors(); n > 0 {
		return min(maxUnproven, max(n/4, 1))
	}
	return maxUnproven
}

// Serve accepts connections until ln fails permanently, runs handle on each, and returns when all have ended.
// If the process or the system is out of file descriptors it waits and continues, as net/http does.
//
// handle calls known once the dialer is authenticated, before the dialer learns that. Of the other
// connections, the oldest is closed when there are more than expected plus MaxUnproven, or no descriptor is
// left: idle unknown peers do not block others.
func Serve(ln net.Listener, expected int, handle func(c net.Conn, known func())) error {
	var all sync.WaitGroup
	defer all.Wait()
	var s unproven
	most := expected + MaxUnproven()
	const least, longest = 5 * time.Millisecond, 250 * time.Millisecond
	for wait := least; ; {
		c, err := ln.Accept()
		switch {
		case err == nil:
			wait = least
		case !passing(err):
			return err
		default:
			s.keep(max(s.count()-1, 1)) // the newest may be about to authenticate
			time.Sleep(wait)
			wait = min(2*wait, longest)
			continue
		}
		known := s.add(c)
		s.keep(most)
		all.Go(func() {
			defer known()
			handle(c, known)
		})
	}
}

// passing reports whether a failed accept may succeed later: descriptors or memory are short, or the dialer
// has already left.
func passing(err error) bool {
	for _, e := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM,
		syscall.ECONNABORTED, syscall.EINTR} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// unproven holds the unauthenticated connections, oldest first.
type unproven struct {
	mu  sync.Mutex
	all list.List
}

// add stores a connection until the returned function is called; it may be called repeatedly.
func (s *unproven) add(c net.Conn) (known func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.all.PushBack(c)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all.Remove(e) // has no effect if it was removed already
	}
}

func (s *unproven) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.Len()
}

// keep closes the oldest connections until at most n are left.
func (s *unproven) keep(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.all.Len() > n {
		s.all.Remove(s.all.Front()).(net.Conn).Close()
	}
}
