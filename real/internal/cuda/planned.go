package cuda

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/units"
)

// Planned executes one rank's programs of a plan: one block per channel interprets the rank's Table
// (kernels/plan.cu). Connections are FIFOs in peer memory, or on the host between GPUs without peer access.
type Planned struct {
	dev    *Device
	t      *Table
	kernel Kernel
	arena  Ptr
	extra  Ptr         // a schedule's scratch memory
	host   []byte      // this rank's part of the connections through the host
	shared *HostMemory // the same, if other processes access it too
	tables Ptr
	times  Ptr // three per slice; 0: times are not recorded
	args   planArgs
}

// Stop is a flag that ends the waits of kernels when a peer has failed. It is in host memory, so that it can
// be set while the GPU is busy. It may be set late (by the end of a context), after the flag's memory is
// freed: hence the lock.
type Stop struct {
	mu   sync.Mutex
	word []byte // nil: closed
}

// NewStop allocates the flag's memory.
func NewStop(dev *Device) (*Stop, error) {
	b, err := dev.HostAlloc(64)
	if err != nil {
		return nil, err
	}
	clear(b)
	return &Stop{word: b}, nil
}

// Set ends all waits permanently. After Close it does nothing.
func (s *Stop) Set() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.word != nil {
		atomic.StoreUint32((*uint32)(unsafe.Pointer(&s.word[0])), 1)
	}
}

func (s *Stop) at() uint64 { return uint64(uintptr(unsafe.Pointer(&s.word[0]))) }

// Close frees the memory; no kernel may run.
func (s *Stop) Close(dev *Device) error {
	s.mu.Lock()
	b := s.word
	s.word = nil
	s.mu.Unlock()
	if b == nil {
		return nil
	}
	return dev.HostFree(b)
}

// NewPlanned allocates the rank's memory. The ranks then exchange their arenas (as mapped on each device)
// with SetPeers. Other users of the device may share k. With share, other processes can access the part on
// the host (HostHandle).
func NewPlanned(k *Kernels, t *Table, stop *Stop, share bool) (_ *Planned, err error) {
	p := &Planned{dev: k.dev, t: t, args: planArgs{stop: stop.at(), n: int32(t.n),
		used: uint32(len(t.lanes))}}
	defer func() {
		if err != nil {
			_ = p.Close()
		}
	}()
	if p.kernel, err = k.get(t.kernel[0], t.kernel[1]); err != nil {
		return nil, err
	}
	size := max(t.wiring.arena[t.Rank], 1)
	if p.arena, err = p.dev.Alloc(size); err != nil {
		return nil, err
	}
	if err = p.dev.Set(p.arena, 0, size, 0); err != nil {
		return nil, err
	}
	if n := t.plan.Layout(int32(t.Rank)).Scratch; n > 0 {
		if p.extra, err = p.dev.Alloc(n); err != nil {
			return nil, err
		}
		p.args.scratch = uint64(p.extra)
	}
	switch n := t.wiring.host[t.Rank]; {
	case n > 0 && share:
		p.shared, err = p.dev.ShareHost(n)
	case n > 0:
		p.host, err = p.dev.HostAlloc(n)
		clear(p.host)
	}
	if err != nil {
		return nil, err
	}
	return p, p.dev.Sync(0)
}

// Arena returns the arena's address, which peers need.
func (p *Planned) Arena() Ptr { return p.arena }

// HostArena returns the address of the part on the host; 0 if there is none.
func (p *Planned) HostArena() Ptr {
	switch {
	case p.shared != nil:
		return p.shared.Device()
	case len(p.host) > 0:
		return Ptr(unsafe.Pointer(&p.host[0]))
	}
	return 0
}

// HostHandle returns the handle of the part on the host for other processes; zero if they cannot access it or
// there is none.
func (p *Planned) HostHandle() (HostHandle, error) {
	if p.shared == nil {
		return HostHandle{}, nil
	}
	return p.shared.Handle()
}

// Needs reports whether the rank's programs use another rank's arena, on its GPU or on the host.
func (p *Planned) Needs(peer int) (arena, host bool) {
	for _, e := range p.t.ends {
		if c := p.t.plan.Conn(e.conn); int(c.Src) != peer && int(c.Dst) != peer {
			continue
		}
		if p.t.wiring.conns[e.conn].slots.host {
			host = true
		} else {
			arena = true
		}
	}
	return arena, host
}

// SetPeers sets the arenas by rank, as mapped here, and writes the tables. With watch every slice records its
// times.
func (p *Planned) SetPeers(arenas, hosts []Ptr, watch bool) error {
	var broken error
	at := func(pl place) uint64 {
		base := arenas[pl.rank]
		if pl.host {
			base = hosts[pl.rank]
		}
		if base == 0 && broken == nil {
			broken = &exec.UnsupportedError{Feature: "a plan's connection",
				Needs: fmt.Sprintf("memory of rank %d that GPU %d reaches", pl.rank, p.dev.Index),
				Found: "none was given"}
		}
		return uint64(base) + uint64(pl.off)
	}
	ends := make([]endRow, len(p.t.ends))
	for i, e := range p.t.ends {
		w := &p.t.wiring.conns[e.conn]
		ends[i] = endRow{slots: at(w.slots), theirs: at(w.tail), ours: at(w.head),
			slot: uint64(p.t.plan.Comm.BuffSizes[w.proto] / slots)}
		ends[i].ready = at(w.ready)
		if e.send {
			ends[i].theirs, ends[i].ours = ends[i].ours, ends[i].theirs
			ends[i].sends, ends[i].peer = 1, uint32(p.t.plan.Conn(e.conn).Dst)
		}
	}
	if broken != nil {
		return broken
	}
	if watch {
		var err error
		if p.times, err = p.dev.Alloc(units.Bytes(timeBytes * p.t.slices)); err != nil {
			return err
		}
	}
	return p.upload(ends)
}

// slots is plan.FIFOSteps as an untyped constant.
const slots = 8

// timeBytes is the size of a slice's times: when it began to wait, began to move data, and ended.
const timeBytes = 24

// upload writes the tables to the device: ends, programs, ops.
func (p *Planned) upload(ends []endRow) error {
	progs := slices.Clone(p.t.programs)
	programs := sizeOf(ends)
	ops := programs + sizeOf(progs)
	var err error
	if p.tables, err = p.dev.Alloc(units.Bytes(ops + sizeOf(p.t.ops))); err != nil {
		return err
	}
	at := uint64(p.tables)
	watched := uint64(p.times)
	for i := range progs {
		progs[i].ops = at + ops + uint64(p.t.firstOp[i])*uint64(unsafe.Sizeof(opRow{}))
		progs[i].times = watched
		if watched == 0 {
			continue
		}
		for _, o := range p.t.ops[p.t.firstOp[i]:][:progs[i].count] {
			watched += timeBytes * uint64(o.slices)
		}
	}
	image := slices.Concat(bytesOf(ends), bytesOf(progs), bytesOf(p.t.ops))
	p.args.ends, p.args.programs = at, at+programs
	copy(p.args.lanes[:], p.t.lanes)
	return p.dev.Upload(p.tables, image)
}

func bytesOf[T any](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), sizeOf(s))
}

func sizeOf[T any](s []T) uint64 { var z T; return uint64(len(s)) * uint64(unsafe.Sizeof(z)) }

// Queue queues the rank's programs on the stream. All ranks must queue equally often. outs are all ranks'
// outputs as mapped here: data that is only stored goes there directly; nil: all data goes through the FIFOs.
func (p *Planned) Queue(in, out Ptr, outs *[MaxRanks]Ptr, s Stream) error {
	if len(p.t.lanes) == 0 {
		return nil
	}
	a := p.args
	a.in, a.out = uint64(in), uint64(out)
	if outs != nil {
		a.outs, a.direct = *outs, 1
	}
	return p.dev.LaunchClusters(p.kernel, p.dev.Clustered(len(p.t.lanes)), warpSize*p.t.warps, s,
		[]unsafe.Pointer{unsafe.Pointer(&a)})
}

const warpSize = 32

// Times returns the times of the last run: nanoseconds of the GPU's clock, three for each slice of each op of
// each program in order; nil if times were not recorded.
func (p *Planned) Times() ([]uint64, error) {
	if p.times == 0 {
		return nil, nil
	}
	t := make([]uint64, 3*p.t.slices)
	return t, p.dev.Download(bytesOf(t), p.times)
}

// Close frees the rank's memory; no peer may use it any more.
func (p *Planned) Close() error {
	var first error
	for _, m := range []*Ptr{&p.arena, &p.extra, &p.tables, &p.times} {
		if *m == 0 {
			continue
		}
		if err := p.dev.Free(*m); err != nil && first == nil {
			first = err
		}
		*m = 0
	}
	if p.host != nil {
		if err := p.dev.HostFree(p.host); err != nil && first == nil {
			first = err
		}
		p.host = nil
	}
	if p.shared != nil {
		if err := p.shared.Close(); err != nil && first == nil {
			first = err
		}
		p.shared = nil
	}
	return first
}
