package verbs

import (
	"encoding/binary"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/simccl/simccl/real/internal/dl"
)

// Fault is the first fatal event of a device or a connection.
type Fault struct{ err atomic.Pointer[error] }

func (f *Fault) set(err error) { f.err.CompareAndSwap(nil, &err) }

// Get returns the event as an error; nil if none occurred.
func (f *Fault) Get() error {
	if e := f.err.Load(); e != nil {
		return *e
	}
	return nil
}

// Numbers of enum ibv_event_type after which an object is unusable (net_ib.cc:206, ncclIbAsyncThreadMain): a
// device, a completion queue, a QP. All others are reported and ignored.
const (
	eventCQ       = 0
	eventQPFatal  = 1
	eventQPReq    = 2
	eventQPAccess = 3
	eventDevice   = 8
)

// watch handles a device's asynchronous events: one goroutine reads them from the kernel and records them at
// the objects they concern.
type watch struct {
	mu    sync.Mutex
	owner map[uintptr]*Fault // by handle of QP or CQ
	dev   Fault
	last  atomic.Pointer[string] // the last event that was not fatal
	file  *os.File
	ended chan struct{}
}

// follow records fatal events of a QP or CQ in f from now on; nil ends it.
func (w *watch) follow(handle uintptr, f *Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f == nil {
		delete(w.owner, handle)
		return
	}
	if w.owner == nil {
		w.owner = map[uintptr]*Fault{}
	}
	w.owner[handle] = f
}

// book records one event; text is its name.
func (w *watch) book(device string, kind uint32, element uintptr, text string) {
	err := &Error{Verb: "asynchronous event " + text, Device: device}
	switch kind {
	case eventDevice:
		w.dev.set(err)
	case eventCQ, eventQPFatal, eventQPReq, eventQPAccess:
		w.mu.Lock()
		defer w.mu.Unlock()
		if f := w.owner[element]; f != nil {
			f.set(err)
		}
	default:
		w.last.Store(&text)
	}
}

// notice returns the last event that was not fatal, for errors that it may explain.
func (w *watch) notice() string {
	if s := w.last.Load(); s != nil {
		return *s
	}
	return ""
}

// startEvents reads the device's events until stopEvents.
func (d *Device) startEvents() error {
	// A duplicate descriptor: closing it ends the wait, and the library's stays open.
	own, err := ownFile(int(peek[int32](d.ctx, offAsyncFD)))
	if err != nil {
		return fmt.Errorf("events of %s: %w", d.Name, err)
	}
	w := &d.watch
	w.file, w.ended = os.NewFile(uintptr(own), d.Name), make(chan struct{})
	raw, err := w.file.SyscallConn()
	if err != nil {
		w.file.Close()
		w.file = nil
		return fmt.Errorf("events of %s: %w", d.Name, err)
	}
	go func() {
		defer close(w.ended)
		_ = raw.Read(func(uintptr) bool { d.drain(); return false })
	}()
	return nil
}

// drain handles all available events.
func (d *Device) drain() {
	ev := new([sizeAsyncEvent]byte)
	for int32(d.lib.fn.getAsyncEvent.Call(d.ctx, Pointer(ev))) == 0 {
		kind := binary.LittleEndian.Uint32(ev[offEventType:])
		d.watch.book(d.Name, kind, uintptr(binary.LittleEndian.Uint64(ev[:])),
			dl.String(d.lib.fn.eventTypeStr.Call(uintptr(kind))))
		// Last: the destroyer of the object waits for this.
		d.lib.fn.ackAsyncEvent.Call(Pointer(ev))
	}
}

func (d *Device) stopEvents() {
	if d.watch.file != nil {
		_ = d.watch.file.Close()
		<-d.watch.ended
	}
}

// Fail simulates an event after which the whole device is unusable; text is the event's name. Tests of users
// of devices call it.
func (d *Device) Fail(text string) { d.watch.book(d.Name, eventDevice, 0, text) }
