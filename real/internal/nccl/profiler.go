package nccl

import (
	"unsafe"

	"github.com/simccl/simccl/real/internal/dl"
)

// Profiler is our plugin (profiler/profiler.c) inside NCCL. NCCL loads it with the first communicator, by
// NCCL_PROFILER_PLUGIN; it records no events until Mask enables them.
type Profiler struct{ mask, write dl.Proc }

// AllEvents is the mask of every event that NCCL reports.
const AllEvents = 1<<12 - 1

// LoadProfiler opens the plugin and makes NCCL load it too. It must be called before the first Init.
func LoadProfiler(path string) (*Profiler, error) {
	const feature = "NCCL's own events"
	lib, err := dl.Open(feature, path)
	if err != nil {
		return nil, err
	}
	p := &Profiler{}
	if err := lib.Bind(feature, map[string]*dl.Proc{"simccl_profiler_mask": &p.mask,
		"simccl_profiler_write": &p.write}); err != nil {
		return nil, err
	}
	for _, kv := range [][2]string{{"NCCL_PROFILER_PLUGIN", path}, {"SIMCCL_PROFILE_MASK", "0"}} {
		if err := Setenv(kv[0], kv[1]); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// Mask enables the kinds of events to record from this call on; 0: none.
func (p *Profiler) Mask(mask int) { p.mask.Call(uintptr(mask)) }

// Write writes all recorded events as a Chrome trace and clears them.
func (p *Profiler) Write(path string) error {
	text := append([]byte(path), 0)
	if int32(p.write.Call(uintptr(unsafe.Pointer(&text[0])))) != 0 {
		return &Error{Call: "write trace", Text: "cannot write " + path}
	}
	return nil
}
