package cuda

import "unsafe"

// NewStream creates a stream that does not wait for the default stream.
func (dev *Device) NewStream() (Stream, error) {
	const nonBlocking = 1
	var s Stream
	err := dev.call("cuStreamCreate", dev.d.fn.streamCreate, addr(&s), nonBlocking)
	return s, err
}

// DestroyStream frees a stream.
func (dev *Device) DestroyStream(s Stream) error {
	return dev.call("cuStreamDestroy", dev.d.fn.streamDestroy, uintptr(s))
}

// Sync waits for all work queued on the stream.
func (dev *Device) Sync(s Stream) error {
	return dev.call("cuStreamSynchronize", dev.d.fn.streamSynchronize, uintptr(s))
}

// Done reports whether all work queued on the stream has ended.
func (dev *Device) Done(s Stream) (bool, error) {
	const notReady = 600
	err := dev.call("cuStreamQuery", dev.d.fn.streamQuery, uintptr(s))
	if e, ok := err.(*Error); ok && e.Code == notReady {
		return false, nil
	}
	return err == nil, err
}

// NewEvent creates an event that can measure time.
func (dev *Device) NewEvent() (Event, error) {
	var e Event
	err := dev.call("cuEventCreate", dev.d.fn.eventCreate, addr(&e), 0)
	return e, err
}

// DestroyEvent frees an event.
func (dev *Device) DestroyEvent(e Event) error {
	return dev.call("cuEventDestroy", dev.d.fn.eventDestroy, uintptr(e))
}

// Record queues the event on the stream.
func (dev *Device) Record(e Event, s Stream) error {
	return dev.call("cuEventRecord", dev.d.fn.eventRecord, uintptr(e), uintptr(s))
}

// After makes the stream wait for the event.
func (dev *Device) After(s Stream, e Event) error {
	return dev.call("cuStreamWaitEvent", dev.d.fn.streamWaitEvent, uintptr(s), uintptr(e), 0)
}

// Between returns the microseconds from one event to another.
func (dev *Device) Between(from, to Event) (float64, error) {
	var ms float32
	err := dev.call("cuEventElapsedTime", dev.d.fn.eventElapsedTime, addr(&ms), uintptr(from), uintptr(to))
	return float64(ms) * 1000, err
}

// Capture records the work that queue puts on the stream and returns it as an executable graph. The capture
// is local to this thread.
func (dev *Device) Capture(s Stream, queue func() error) (Graph, error) {
	const threadLocal = 1
	if err := dev.call("cuStreamBeginCapture", dev.d.fn.streamBeginCapture, uintptr(s), threadLocal); err !=
		nil {
		return 0, err
	}
	qerr := queue()
	var g uintptr
	err := dev.call("cuStreamEndCapture", dev.d.fn.streamEndCapture, uintptr(s), addr(&g))
	if qerr != nil {
		return 0, qerr
	}
	if err != nil {
		return 0, err
	}
	var x Graph
	err = dev.call("cuGraphInstantiate", dev.d.fn.graphInstantiate, addr(&x), g, 0)
	if derr := dev.call("cuGraphDestroy", dev.d.fn.graphDestroy, g); err == nil {
		err = derr
	}
	return x, err
}

// LaunchGraph queues a graph.
func (dev *Device) LaunchGraph(g Graph, s Stream) error {
	return dev.call("cuGraphLaunch", dev.d.fn.graphLaunch, uintptr(g), uintptr(s))
}

// DestroyGraph frees a graph.
func (dev *Device) DestroyGraph(g Graph) error {
	return dev.call("cuGraphExecDestroy", dev.d.fn.graphExecDestroy, uintptr(g))
}

// Module is loaded device code; Kernel one function of it.
type (
	Module uintptr
	Kernel uintptr
)

// Load loads PTX or a cubin; PTX is compiled by the driver.
func (dev *Device) Load(image []byte) (Module, error) {
	text := append(append(make([]byte, 0, len(image)+1), image...), 0)
	var m Module
	err := dev.call("cuModuleLoadData", dev.d.fn.moduleLoadData, addr(&m), uintptr(unsafe.Pointer(&text[0])))
	return m, err
}

// Unload frees a module.
func (dev *Device) Unload(m Module) error {
	return dev.call("cuModuleUnload", dev.d.fn.moduleUnload, uintptr(m))
}

// Kernel returns a function of a module.
func (dev *Device) Kernel(m Module, name string) (Kernel, error) {
	text := append([]byte(name), 0)
	var k Kernel
	err := dev.call("cuModuleGetFunction "+name, dev.d.fn.moduleGetFunction, addr(&k), uintptr(m),
		uintptr(unsafe.Pointer(&text[0])))
	return k, err
}
