//go:build !cgo && linux && (amd64 || arm64)

package detect

import (
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/simccl/simccl/topo"
)

// library is a handle of libnvidia-ml.so.1, opened at run time.
type library struct{ h uintptr }

func (l library) call(name string, args ...uintptr) uint32 {
	f, err := purego.Dlsym(l.h, name)
	if err != nil {
		return 13 // NVML_ERROR_FUNCTION_NOT_FOUND
	}
	r, _, _ := purego.SyscallN(f, args...)
	return uint32(r)
}

// cell is a place for C to write to, on the heap while the call runs.
type cell struct{ b [256]byte }

func (c *cell) addr() uintptr          { kept = c; return uintptr(unsafe.Pointer(kept)) }
func (c *cell) u32(at int) uint32      { return *(*uint32)(unsafe.Pointer(&c.b[at])) }
func (c *cell) put32(at int, v uint32) { *(*uint32)(unsafe.Pointer(&c.b[at])) = v }
func (c *cell) text(at int) string {
	n := at
	for n < len(c.b) && c.b[n] != 0 {
		n++
	}
	return string(c.b[at:n])
}

// kept holds the last cell passed to NVML: the assignment makes cells escape to the heap, where they do not
// move.
var kept *cell

// NVML lists the machine's GPUs through libnvidia-ml.so.1.
func NVML() ([]GPU, error) {
	h, err := purego.Dlopen("libnvidia-ml.so.1", purego.RTLD_NOW)
	if err != nil {
		return nil, &AbsentError{"libnvidia-ml.so.1", err.Error()}
	}
	l := library{h}
	if r := l.call("nvmlInit_v2"); r != 0 {
		return nil, &AbsentError{"a working NVIDIA driver", "nvmlInit gives error " + itoa(r)}
	}
	defer l.call("nvmlShutdown")
	n := new(cell)
	if r := l.call("nvmlDeviceGetCount_v2", n.addr()); r != 0 {
		return nil, &AbsentError{"NVML's device count", "error " + itoa(r)}
	}
	var out []GPU
	for i := range int(n.u32(0)) {
		d := new(cell)
		if r := l.call("nvmlDeviceGetHandleByIndex_v2", uintptr(i), d.addr()); r != 0 {
			return nil, &AbsentError{"NVML's access to GPU " + itoa(uint32(i)), "error " + itoa(r)}
		}
		out = append(out, l.device(*(*uintptr)(unsafe.Pointer(&d.b[0])), i))
	}
	return withGDR(out), nil
}

func itoa(v uint32) string {
	if v < 10 {
		return string(rune('0' + v))
	}
	return itoa(v/10) + itoa(v%10)
}

// pciBusID is the offset of busId in nvmlPciInfo_t.
const pciBusID = 16 + 5*4

func (l library) device(d uintptr, i int) GPU {
	g := GPU{Index: i}
	c := new(cell)
	if l.call("nvmlDeviceGetPciInfo_v3", d, c.addr()) == 0 {
		g.BusID = busID(c.text(pciBusID))
	}
	major, minor := new(cell), new(cell)
	if l.call("nvmlDeviceGetCudaComputeCapability", d, major.addr(), minor.addr()) == 0 {
		g.SM = int(10*major.u32(0) + minor.u32(0))
	}
	if name := new(cell); l.call("nvmlDeviceGetName", d, name.addr(), 96) == 0 {
		g.Name = name.text(0)
	}
	for k := range topo.MaxNVLinks(g.SM) {
		ok, far := new(cell), new(cell)
		if l.call("nvmlDeviceGetNvLinkCapability", d, uintptr(k), capP2P, ok.addr()) != 0 || ok.u32(0) == 0 ||
			!l.active(d, k, g.SM) {
			continue
		}
		if l.call("nvmlDeviceGetNvLinkRemotePciInfo_v2", d, uintptr(k), far.addr()) == 0 {
			g.Links = append(g.Links, busID(far.text(pciBusID)))
		}
	}
	l.c2c(d, &g)
	return g
}

func (l library) active(d uintptr, link, sm int) bool {
	if sm < 90 {
		s := new(cell)
		return l.call("nvmlDeviceGetNvLinkState", d, uintptr(link), s.addr()) == 0 && s.u32(0) == 1
	}
	v, ok := l.field(d, fieldNVLinkState, link)
	return ok && v == 1
}

func (l library) c2c(d uintptr, g *GPU) {
	if g.SM < 90 {
		return
	}
	n, ok := l.field(d, fieldC2CCount, 0)
	if !ok {
		return
	}
	for k := range int(n) {
		status, ok1 := l.field(d, fieldC2CStatus, k)
		bw, ok2 := l.field(d, fieldC2CMaxBW, k)
		if ok1 && ok2 && status == 1 {
			g.C2CMBps, g.C2CCount = int(bw), g.C2CCount+1
		}
	}
}

// field reads one nvmlFieldValue_t: id and scope at 0 and 4, return at 28,
// value at 32.
func (l library) field(d uintptr, id uint32, scope int) (uint32, bool) {
	c := new(cell)
	c.put32(0, id)
	c.put32(4, uint32(scope))
	if l.call("nvmlDeviceGetFieldValues", d, 1, c.addr()) != 0 || c.u32(28) != 0 {
		return 0, false
	}
	return c.u32(32), true
}
