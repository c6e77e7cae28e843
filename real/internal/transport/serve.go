package transport

import (
	"container/list"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"
)

// maxUnproven is the number of unauthenticated connections that a listener
// keeps, beside those that it expects, if descriptors are plentiful.
const maxUnproven = 128

// MaxUnproven is that number for this process: at most a quarter of its
// descriptors, so that the rest of it has some.
func MaxUnproven() int {
	if n := descriptors(); n > 0 {
		return min(maxUnproven, max(n/4, 1))
	}
	return maxUnproven
}

// Serve accepts connections until ln fails for good, runs handle on each, and
// returns when all have ended. Where the process or the system is out of file
// descriptors it waits and continues, as net/http does.
//
// handle calls known once the caller has proven what it is, before the caller learns that. Of the callers
// that have not, the oldest is closed when there are more than those expected and
// MaxUnproven, or no descriptor is left: idle unknown peers do not block others.
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
			s.keep(max(s.count()-1, 1)) // the youngest may be about to prove itself
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

// passing reports whether a failed accept may succeed later: descriptors or memory
// are short, or the caller has left already.
func passing(err error) bool {
	for _, e := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM,
		syscall.ECONNABORTED, syscall.EINTR} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// unproven are the unauthenticated connections, oldest first.
type unproven struct {
	mu  sync.Mutex
	all list.List
}

// add keeps a connection until the returned function is called, once or more.
func (s *unproven) add(c net.Conn) (known func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.all.PushBack(c)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all.Remove(e) // nothing where it has been removed
	}
}

func (s *unproven) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.Len()
}

// keep closes the oldest until at most n are left.
func (s *unproven) keep(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.all.Len() > n {
		s.all.Remove(s.all.Front()).(net.Conn).Close()
	}
}
