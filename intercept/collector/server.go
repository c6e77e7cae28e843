package collector

import (
	"errors"
	"io"
	"net"
	"slices"
	"syscall"
	"time"
)

// waiter is a thread whose request cannot be answered yet.
type waiter struct {
	t    *thread
	try  func() (reply, bool)
	done chan reply
	// attends: it waits for something to do, not for the program.
	attends bool
}

// Serve answers the programs that connect, until the listener is closed. Where
// descriptors are short it waits until connections have ended, as net/http does.
func (c *Core) Serve(l net.Listener) error {
	const least, longest = 5 * time.Millisecond, 250 * time.Millisecond
	for wait := least; ; {
		conn, err := l.Accept()
		switch {
		case err == nil:
			wait = least
			go c.serve(conn)
		case errors.Is(err, net.ErrClosed):
			return nil
		case errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) ||
			errors.Is(err, syscall.ECONNABORTED) || errors.Is(err, syscall.EINTR):
			time.Sleep(wait)
			wait = min(2*wait, longest)
		default:
			return err
		}
	}
}

// greeting reads the first request of a connection, whose process the system names.
func (c *Core) greeting(conn net.Conn) (*request, *Peer, error) {
	b := make([]byte, requestSize)
	if c.set.Know == nil {
		_, err := io.ReadFull(conn, b)
		q := parseRequest(b)
		return q, &Peer{PID: int(q.a[0])}, err
	}
	peer, err := c.set.Know(conn, b)
	return parseRequest(b), peer, err
}

// Said returns the process id of a greeting, and whether the connection is the whole process's or one
// thread's.
func Said(hello []byte) (pid int, whole bool) {
	q := parseRequest(hello)
	return int(q.a[0]), q.a[1] == nameOfWholeProcess
}

// serve answers one connection.
func (c *Core) serve(conn net.Conn) {
	defer conn.Close()
	t := &thread{}
	q, peer, err := c.greeting(conn)
	for ; err == nil; q, err = readRequest(conn) {
		r, done := c.handle(t, q, peer)
		if done == nil {
			r.now = t.now
		} else if r = <-done; r.now < 0 {
			return
		}
		if q.kind == reqBye {
			continue
		}
		if r.write(conn) != nil || t.p == nil {
			break
		}
	}
	if peer != nil && peer.Memory != nil && !t.whole {
		peer.Memory.Close()
	}
	c.closed(t)
}

// handle carries out a request; done, if not nil, is where the reply comes later.
func (c *Core) handle(t *thread, q *request, peer *Peer) (reply, chan reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serial++
	if t.p == nil {
		return c.hello(t, q, peer), nil
	}
	t.now = max(t.now, q.now)
	t.p.latest = max(t.p.latest, t.now)
	r, try := c.dispatch(t, q)
	c.clock.Settle()
	if try == nil {
		c.answer(t)
		return r, nil
	}
	c.answer(t)
	if r, ok := c.attempt(t, try); ok {
		c.answer(t)
		return r, nil
	}
	w := &waiter{t: t, try: try, done: make(chan reply, 1), attends: q.kind == reqAttend}
	c.waiting = append(c.waiting, w)
	return reply{}, w.done
}

// attempt tries to answer a thread that waits. A host function of its process has
// to run first.
func (c *Core) attempt(t *thread, try func() (reply, bool)) (reply, bool) {
	p := t.p
	r, ok := try()
	if !ok && len(p.queue) > 0 && !t.whole {
		o := p.queue[0]
		p.queue = p.queue[1:]
		token := int64(c.serial)<<16 + int64(len(p.running)) + 1
		p.running[token] = o
		r, ok = reply{status: statusFunction, a: [4]int64{o.a[0], o.a[1], token}}, true
	}
	if ok {
		p.latest = max(p.latest, t.now)
		r.now = t.now
	}
	return r, ok
}

// answer tries the requests that wait again, until none of them changes anything.
func (c *Core) answer(t *thread) {
	if t.p != nil {
		t.p.latest = max(t.p.latest, t.now)
	}
	for c.changed {
		c.changed = false
		c.clock.Settle()
		kept := c.waiting[:0]
		for _, w := range c.waiting {
			if r, ok := c.attempt(w.t, w.try); ok {
				w.done <- r
			} else {
				kept = append(kept, w)
			}
		}
		clear(c.waiting[len(kept):])
		c.waiting = kept
	}
}

// dispatch carries out a request, or returns how to try it again.
func (c *Core) dispatch(t *thread, q *request) (reply, func() (reply, bool)) {
	switch q.kind {
	case reqHello:
		return refuse(internalError, "a second greeting"), nil
	case reqBye:
		return reply{}, nil
	case reqInit:
		t.worked = true
		return c.init(t, q), nil
	case reqWaitInit:
		m, bad := c.member(q.a[0])
		if bad != nil {
			return *bad, nil
		}
		return reply{}, m.waitInit
	case reqState:
		return c.state(q), nil
	case reqSplit:
		return c.split(q), nil
	case reqShrink:
		return c.shrink(q), nil
	case reqGroup:
		return c.group(t, q), nil
	case reqLeave:
		return c.leave(q), nil
	case reqSyncComm:
		m, bad := c.member(q.a[0])
		if bad != nil {
			return *bad, nil
		}
		return reply{}, func() (reply, bool) { return c.finalized(t, m) }
	}
	if q.kind >= reqSegment && q.kind <= reqAstray {
		return c.liveRequest(t, q)
	}
	return reply{}, func() (reply, bool) { return c.streamRequest(t, q) }
}

// liveRequest is one of a process on real devices.
func (c *Core) liveRequest(t *thread, q *request) (reply, func() (reply, bool)) {
	switch q.kind {
	case reqBacklog:
		return c.backlog(t, q), nil
	case reqSegmentDone:
		return c.segmentDone(t, q), nil
	case reqMoved:
		return c.moved(t.p, q), nil
	case reqParked:
		return c.parked(t.p, q), nil
	case reqTurn:
		return c.askTurn(t.p, q), nil
	case reqAstray:
		return c.astray(t.p), nil
	}
	return reply{}, c.attend(t, q)
}

// finalized waits until a member's launches have ended.
func (c *Core) finalized(t *thread, m *member) (reply, bool) {
	if m.c.failed != 0 {
		return refuse(m.c.failed, "%s", m.c.text), true
	}
	if len(m.pending) > 0 {
		return reply{}, false
	}
	if o := c.gpus[m.gpu()].kernels[m.c.root()]; o != nil && o.Ended {
		t.jump(int64(o.End))
	}
	return reply{}, true
}

// hello answers the greeting of a thread: the clock, the devices and the GPUs that its program finds.
func (c *Core) hello(t *thread, q *request, peer *Peer) reply {
	switch {
	case q.kind != reqHello:
		return refuse(internalError, "a request before the greeting")
	case peer.Refuse != nil:
		if !c.refused[peer.PID] {
			c.refused[peer.PID] = true
			c.warn("a connection was refused: %v", peer.Refuse)
		}
		return refuse(systemError, "simccl intercept refuses this process: %v", peer.Refuse)
	}
	t.whole = q.a[1] == nameOfWholeProcess
	t.p, t.id = c.processOf(peer.PID, int(q.a[0]), int(q.a[2]), t.whole), int(q.a[3])
	if t.whole {
		t.p.shows(peer.Memory)
	} else {
		c.threads[t] = true
		t.p.threads[t.id] = t
	}
	word := int64(c.set.Clock) | int64(c.set.Devices)<<4
	if c.set.Data {
		word |= 1 << 8
	}
	if c.set.Live() {
		word |= 1 << 9
	}
	return reply{a: [4]int64{word, int64(c.set.GPUs), int64(c.set.SM), c.set.Memory}}
}

// shows replaces what of the process's memory can be read and written; nil: nothing.
func (p *process) shows(m Memory) {
	if p.memory != nil {
		p.memory.Close()
	}
	p.memory = m
}

// closed is when a connection ends: with that of the process it has ended, or was
// killed.
func (c *Core) closed(t *thread) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.threads, t)
	kept := c.waiting[:0]
	for _, w := range c.waiting {
		if w.t == t || t.whole && w.t.p == t.p {
			delete(c.threads, w.t)
			w.done <- reply{now: -1}
		} else {
			kept = append(kept, w)
		}
	}
	c.waiting = kept
	if t.p == nil || !t.whole || c.feeding { // programs have ended before their records are read
		return
	}
	t.p.ended = true
	t.p.shows(nil)
	c.endTurn(t.p)
	for _, m := range c.members {
		if m.dev.p != t.p || m.left && m.how == leaveDestroy {
			continue
		}
		switch {
		case m.left:
		case m.c != nil && m.c.done:
			m.left, m.how = true, leaveEnded
			c.drop(m)
			c.deserted(m, "was in a process that has ended")
		default:
			c.abort(m, "was in a process that has ended")
		}
	}
	c.clock.Settle()
	c.answer(t)
}

// Watch reports and ends what can never go on: all threads wait, or no thread has
// asked anything for the time limit. It returns when stop is closed.
func (c *Core) Watch(stop <-chan struct{}, limit time.Duration) {
	const every = 100 * time.Millisecond
	tick := time.NewTicker(every)
	defer tick.Stop()
	last, quiet := 0, 0
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		c.mu.Lock()
		c.tick()
		if c.serial != last || !c.awaited() {
			last, quiet = c.serial, 0
		} else if quiet++; quiet >= 5 && c.allWait() || time.Duration(quiet)*every >= limit {
			c.deadlock()
			quiet = 0
		}
		c.mu.Unlock()
	}
}

// awaited reports whether something waits for the ranks of a communicator: a thread, or a
// real stream.
func (c *Core) awaited() bool {
	if slices.ContainsFunc(c.waiting, func(w *waiter) bool { return !w.attends }) {
		return true
	}
	for _, p := range c.procs {
		if len(p.live.tickets) > 0 && !p.ended {
			return true
		}
	}
	return false
}

// allWait reports whether each thread that works waits. Ranks of a communicator that is being
// made may be of processes that have not begun yet.
func (c *Core) allWait() bool {
	if len(c.forming) > 0 {
		return false
	}
	waits := map[*thread]bool{}
	for _, w := range c.waiting {
		waits[w.t] = true
	}
	for t := range c.threads { //lint:sorted any of them
		if t.worked && !waits[t] {
			return false
		}
	}
	return true
}

// deadlock reports who waits for whom, and ends it.
func (c *Core) deadlock() {
	c.warn("the program is stuck:%s", c.stuck())
	text := "the ranks wait for each other: see the report of simccl intercept"
	for _, x := range c.comms {
		for _, m := range x.members {
			if len(m.pending) > 0 {
				c.fail(x, remoteError, text)
				break
			}
		}
	}
	for len(c.forming) > 0 {
		for _, x := range c.forming { //lint:sorted all of them
			c.fail(x, remoteError, "a rank of the communicator did not come")
			break
		}
	}
	for _, m := range c.members { // splits that not all ranks have called
		if m.c == nil && m.failed == 0 {
			m.failed, m.text = remoteError,
				"a rank of the parent did not call ncclCommSplit or ncclCommShrink"
		}
	}
	c.changed = true
	c.clock.Settle()
	c.answer(&thread{})
}
