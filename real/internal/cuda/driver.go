// Package cuda drives NVIDIA GPUs through the driver library libcuda.so.1, opened at run time, and holds our
// kernels: interpreters of a plan's programs (Compiler, Planned), free algorithms (Free) and checks of
// results (Checker). Their CUDA source is in kernels/, compiled to PTX that is checked in; package fake runs
// the same source on CPUs for tests. Device memory is a plain address (Ptr); a context must be current on the
// calling OS thread, so callers lock their goroutine to its thread (Device.Bind).
package cuda

import (
	"fmt"
	"runtime"
	"strconv"
	"unsafe"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/real/internal/dl"
)

// Ptr is an address in device memory; 0: none.
type Ptr uintptr

// Stream, Event, Graph and Ctx are the driver's handles.
type (
	Stream uintptr
	Event  uintptr
	Graph  uintptr // an instantiated (executable) graph
	ctx    uintptr
)

// Error reports a failed driver call: the function, CUDA's error code and name, and the device.
type Error struct {
	Call string
	Code int
	Name string // CUDA_ERROR_...
	Dev  int    // device index; -1 if none is current
}

func (e *Error) Error() string {
	if e.Dev >= 0 {
		return fmt.Sprintf("cuda: %s on device %d: %s (%d)", e.Call, e.Dev, e.Name, e.Code)
	}
	return fmt.Sprintf("cuda: %s: %s (%d)", e.Call, e.Name, e.Code)
}

// OutOfMemory reports whether the call failed for lack of device memory.
func (e *Error) OutOfMemory() bool { return e.Code == 2 }

// Driver is the open libcuda with the functions used.
type Driver struct {
	lib     *dl.Lib
	count   int
	version int
	fn      procs
}

// procs are the functions used, under the names that the driver exports.
type procs struct {
	init, driverGetVersion, deviceGetCount, deviceGet, deviceGetName, deviceGetPCIBusID, deviceGetByPCIBusID,
	deviceGetAttribute, primaryCtxRetain, primaryCtxRelease, ctxSetCurrent, ctxSynchronize,
	deviceCanAccessPeer, ctxEnablePeerAccess,
	memAlloc, memFree, memGetInfo, memHostAlloc, memFreeHost, memHostRegister, memHostUnregister,
	memHostGetDevicePointer, memcpyHtoD, memcpyDtoH, memcpyAsync, memsetD8, memsetD32,
	streamCreate, streamDestroy, streamSynchronize, streamWaitEvent, streamQuery, streamBeginCapture,
	streamEndCapture,
	eventCreate, eventDestroy, eventRecord, eventSynchronize, eventQuery, eventElapsedTime,
	graphInstantiate, graphLaunch, graphExecDestroy, graphDestroy,
	moduleLoadData, moduleUnload, moduleGetFunction, launchKernel, launchKernelEx,
	ipcGetMemHandle, ipcOpenMemHandle, ipcCloseMemHandle, getErrorName dl.Proc
}

func (p *procs) table() map[string]*dl.Proc {
	return map[string]*dl.Proc{
		"cuInit": &p.init, "cuDriverGetVersion": &p.driverGetVersion, "cuDeviceGetCount": &p.deviceGetCount,
		"cuDeviceGet": &p.deviceGet, "cuDeviceGetName": &p.deviceGetName,
		"cuDeviceGetPCIBusId": &p.deviceGetPCIBusID, "cuDeviceGetByPCIBusId": &p.deviceGetByPCIBusID,
		"cuDeviceGetAttribute": &p.deviceGetAttribute, "cuDevicePrimaryCtxRetain": &p.primaryCtxRetain,
		"cuDevicePrimaryCtxRelease_v2": &p.primaryCtxRelease, "cuCtxSetCurrent": &p.ctxSetCurrent,
		"cuCtxSynchronize": &p.ctxSynchronize, "cuDeviceCanAccessPeer": &p.deviceCanAccessPeer,
		"cuCtxEnablePeerAccess": &p.ctxEnablePeerAccess,
		"cuMemAlloc_v2":         &p.memAlloc, "cuMemFree_v2": &p.memFree, "cuMemGetInfo_v2": &p.memGetInfo,
		"cuMemHostAlloc": &p.memHostAlloc, "cuMemFreeHost": &p.memFreeHost,
		"cuMemHostRegister_v2":         &p.memHostRegister,
		"cuMemHostUnregister":          &p.memHostUnregister,
		"cuMemHostGetDevicePointer_v2": &p.memHostGetDevicePointer,
		"cuMemcpyHtoD_v2":              &p.memcpyHtoD, "cuMemcpyDtoH_v2": &p.memcpyDtoH,
		"cuMemcpyAsync":   &p.memcpyAsync,
		"cuMemsetD8Async": &p.memsetD8, "cuMemsetD32Async": &p.memsetD32,
		"cuStreamCreate": &p.streamCreate, "cuStreamDestroy_v2": &p.streamDestroy,
		"cuStreamWaitEvent":   &p.streamWaitEvent,
		"cuStreamSynchronize": &p.streamSynchronize, "cuStreamQuery": &p.streamQuery,
		"cuStreamBeginCapture_v2": &p.streamBeginCapture, "cuStreamEndCapture": &p.streamEndCapture,
		"cuEventCreate": &p.eventCreate, "cuEventDestroy_v2": &p.eventDestroy,
		"cuEventRecord":      &p.eventRecord,
		"cuEventSynchronize": &p.eventSynchronize, "cuEventQuery": &p.eventQuery,
		"cuEventElapsedTime":          &p.eventElapsedTime,
		"cuGraphInstantiateWithFlags": &p.graphInstantiate, "cuGraphLaunch": &p.graphLaunch,
		"cuGraphExecDestroy": &p.graphExecDestroy, "cuGraphDestroy": &p.graphDestroy,
		"cuModuleLoadData": &p.moduleLoadData, "cuModuleUnload": &p.moduleUnload,
		"cuModuleGetFunction": &p.moduleGetFunction, "cuLaunchKernel": &p.launchKernel,
		"cuIpcGetMemHandle": &p.ipcGetMemHandle, "cuIpcOpenMemHandle_v2": &p.ipcOpenMemHandle,
		"cuIpcCloseMemHandle": &p.ipcCloseMemHandle, "cuGetErrorName": &p.getErrorName,
	}
}

// Open loads the driver and initialises it. Without a driver or a GPU it
// returns an *exec.UnsupportedError.
func Open() (*Driver, error) { return OpenFrom("libcuda.so.1") }

// OpenFrom is Open with a given library.
func OpenFrom(library string) (*Driver, error) {
	const feature = "CUDA"
	lib, err := dl.Open(feature, library)
	if err != nil {
		return nil, err
	}
	d := &Driver{lib: lib}
	if err := lib.Bind(feature, d.fn.table()); err != nil {
		return nil, err
	}
	if err := d.check("cuInit", -1, d.fn.init.Call(0)); err != nil {
		return nil, &exec.UnsupportedError{Feature: feature, Needs: "a working NVIDIA driver",
			Found: err.Error()}
	}
	var n, v int32
	if err := d.check("cuDeviceGetCount", -1, d.fn.deviceGetCount.Call(addr(&n))); err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, &exec.UnsupportedError{Feature: feature, Needs: "an NVIDIA GPU",
			Found: "the driver lists none"}
	}
	if err := d.check("cuDriverGetVersion", -1, d.fn.driverGetVersion.Call(addr(&v))); err != nil {
		return nil, err
	}
	d.count, d.version = int(n), int(v)
	if d.version >= clustersSince {
		err = lib.Bind(feature, map[string]*dl.Proc{"cuLaunchKernelEx": &d.fn.launchKernelEx})
	}
	return d, err
}

// addr passes a Go variable to C for the length of one call. The variable must be on the heap, because a
// growing stack would move it during the call; the caller keeps it alive by using it afterwards.
func addr[T any](p *T) uintptr {
	if neverSet {
		leak = unsafe.Pointer(p)
	}
	return uintptr(unsafe.Pointer(p))
}

// leak makes every pointer that passes through addr escape to the heap.
var (
	//lint:ignore U1000 that it is written to is its use
	leak     unsafe.Pointer
	neverSet bool
)

func (d *Driver) check(call string, dev int, code uintptr) error {
	c := int(int32(code))
	if c == 0 {
		return nil
	}
	name := "unknown error"
	var s *byte
	if d.fn.getErrorName != 0 && int32(d.fn.getErrorName.Call(uintptr(c), addr(&s))) == 0 && s != nil {
		name = cString(s)
	}
	return &Error{Call: call, Code: c, Name: name, Dev: dev}
}

func cString(p *byte) string {
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(p, n))
}

// Count returns the number of devices.
func (d *Driver) Count() int { return d.count }

// Version returns the driver's CUDA version, 13000 for 13.0.
func (d *Driver) Version() int { return d.version }

// Device is one GPU with its primary context retained.
type Device struct {
	Index   int
	Name    string
	BusID   string // 0000:1b:00.0
	SM      int    // 90 for sm_90
	NumSMs  int
	d       *Driver
	handle  int32
	context ctx
}

// Device attributes (cuda.h, CUdevice_attribute).
const (
	attrMultiprocessors = 16
	attrMajor           = 75
	attrMinor           = 76
)

// Device opens a GPU and retains its primary context.
func (d *Driver) Device(index int) (*Device, error) {
	dev := &Device{Index: index, d: d}
	if err := d.check("cuDeviceGet", index, d.fn.deviceGet.Call(addr(&dev.handle), uintptr(index))); err !=
		nil {
		return nil, err
	}
	h := uintptr(dev.handle)
	var name [128]byte
	if err := d.check("cuDeviceGetName", index, d.fn.deviceGetName.Call(addr(&name[0]), uintptr(len(name)),
		h)); err != nil {
		return nil, err
	}
	dev.Name = cString(&name[0])
	if err := d.check("cuDeviceGetPCIBusId", index, d.fn.deviceGetPCIBusID.Call(addr(&name[0]),
		uintptr(len(name)), h)); err != nil {
		return nil, err
	}
	dev.BusID = cString(&name[0])
	attrs := [3]int32{}
	for i, a := range []uintptr{attrMajor, attrMinor, attrMultiprocessors} {
		if err := d.check("cuDeviceGetAttribute", index, d.fn.deviceGetAttribute.Call(addr(&attrs[i]), a,
			h)); err != nil {
			return nil, err
		}
	}
	dev.SM, dev.NumSMs = int(attrs[0]*10+attrs[1]), int(attrs[2])
	if err := d.check("cuDevicePrimaryCtxRetain", index, d.fn.primaryCtxRetain.Call(addr(&dev.context),
		h)); err != nil {
		return nil, err
	}
	return dev, nil
}

// Bind makes the device current on this goroutine's OS thread, to which it locks the goroutine; the returned
// function unlocks it.
func (dev *Device) Bind() (func(), error) {
	runtime.LockOSThread()
	if err := dev.call("cuCtxSetCurrent", dev.d.fn.ctxSetCurrent, uintptr(dev.context)); err != nil {
		runtime.UnlockOSThread()
		return nil, err
	}
	return runtime.UnlockOSThread, nil
}

//go:uintptrescapes
func (dev *Device) call(name string, p dl.Proc, args ...uintptr) error {
	return dev.d.check(name, dev.Index, p.Call(args...))
}

// Close releases the primary context.
func (dev *Device) Close() error {
	return dev.call("cuDevicePrimaryCtxRelease", dev.d.fn.primaryCtxRelease, uintptr(dev.handle))
}

// reaches returns an *exec.UnsupportedError if the driver says that this device cannot access another's
// memory.
func (dev *Device) reaches(handle int32, name string) error {
	var can int32
	if err := dev.call("cuDeviceCanAccessPeer", dev.d.fn.deviceCanAccessPeer, addr(&can), uintptr(dev.handle),
		uintptr(handle)); err != nil {
		return err
	}
	if can == 0 {
		return &exec.UnsupportedError{Feature: "peer access", Needs: fmt.Sprintf("P2P from GPU %d to GPU %s",
			dev.Index, name), Found: "the driver refuses it"}
	}
	return nil
}

// Reaches returns nil if this device can access the memory of another process's GPU, as EnablePeer checks.
// For a GPU that this process does not see (CUDA_VISIBLE_DEVICES) it returns nil too, as that is only known
// when its memory is opened.
func (dev *Device) Reaches(busID string) error {
	var h int32
	text := append([]byte(busID), 0)
	if code := dev.d.fn.deviceGetByPCIBusID.Call(addr(&h), uintptr(unsafe.Pointer(&text[0]))); code != 0 ||
		h == dev.handle {
		return nil
	}
	return dev.reaches(h, busID)
}

// EnablePeer lets this device read and write peer's memory.
func (dev *Device) EnablePeer(peer *Device) error {
	if err := dev.reaches(peer.handle, strconv.Itoa(peer.Index)); err != nil {
		return err
	}
	err := dev.call("cuCtxEnablePeerAccess", dev.d.fn.ctxEnablePeerAccess, uintptr(peer.context), 0)
	const alreadyEnabled = 704
	if e, ok := err.(*Error); ok && e.Code == alreadyEnabled {
		return nil
	}
	return err
}
