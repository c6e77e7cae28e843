package kineto

import (
	"bytes"
	"strings"

	"github.com/simccl/simccl/workload/internal/jsonscan"
)

// event is one event while it is read. Texts are copies in buffers that the next
// event uses again.
type event struct {
	ph             byte
	cat, name, tid []byte
	ts, dur        int64
	hasTs, hasDur  bool
	stream         int64
	hasStream      bool
	corr, external int64
	blocks, thread int64
	bytes          int64
	regs, shared   int64
	waitOn, evID   int64
	record         int64
	hasComm        bool
	comm           Comm
	ranks          []int64
	cut            bool
	groupName      []byte
	groupDesc      []byte
}

func (e *event) reset() {
	*e = event{cat: e.cat[:0], name: e.name[:0], tid: e.tid[:0], groupName: e.groupName[:0],
		groupDesc: e.groupDesc[:0],
		stream:    -1, waitOn: -1, record: -1, evID: -1, comm: Comm{Group: -1, Root: -1, Thread: -1}}
}

// eventMember reads one member of an event into r.e.
func (r *reader) eventMember(key []byte) error {
	e := &r.e
	switch string(key) {
	case "ph":
		t, err := r.s.Text()
		if len(t) > 0 {
			e.ph = t[0]
		}
		return err
	case "cat":
		t, err := r.s.Text()
		e.cat = append(e.cat, t...)
		return err
	case "name":
		t, err := r.s.Text()
		e.name = append(e.name, t...)
		return err
	case "tid":
		t, err := r.s.Text()
		e.tid = append(e.tid, t...)
		return err
	case "ts":
		t, err := r.s.Text()
		e.ts, e.hasTs = jsonscan.Milli(t)
		return err
	case "dur":
		t, err := r.s.Text()
		e.dur, e.hasDur = jsonscan.Milli(t)
		return err
	case "args":
		if r.s.Peek() != '{' || e.ph != 0 && e.ph != 'X' || !wanted(e.cat, e.name) {
			return r.s.Skip()
		}
		return r.s.Object(r.arg)
	}
	return r.s.Skip()
}

// wanted reports whether the arguments of an event may be needed. It is true if category or name follow the
// arguments.
func wanted(cat, name []byte) bool {
	switch string(cat) {
	case "cpu_op", "Operator", "user_annotation":
		return len(name) == 0 || string(name) == "record_param_comms"
	case "python_function", "gpu_user_annotation", "ac2g", "fwdbwd", "Trace", "overhead", "python":
		return false
	}
	return true
}

// arg reads one argument of an event into r.e.
func (r *reader) arg(key []byte) (err error) {
	e := &r.e
	switch string(key) {
	case "stream":
		e.stream, err = r.s.Int()
		e.hasStream = true
	case "correlation":
		e.corr, err = r.s.Int()
	case "External id", "external id":
		e.external, err = r.s.Int()
	case "grid":
		e.blocks, err = r.product()
	case "block":
		e.thread, err = r.product()
	case "bytes":
		e.bytes, err = r.s.Int()
	case "registers per thread":
		e.regs, err = r.s.Int()
	case "shared memory":
		e.shared, err = r.s.Int()
	case "wait_on_stream":
		e.waitOn, err = r.s.Int()
	case "wait_on_cuda_event_id":
		e.evID, err = r.s.Int()
	case "wait_on_cuda_event_record_corr_id":
		e.record, err = r.s.Int()
	default:
		return r.commArg(key)
	}
	return err
}

// commArg reads an argument about a call of a process group.
func (r *reader) commArg(key []byte) (err error) {
	e := &r.e
	var t []byte
	switch string(key) {
	case "Collective name":
		t, err = r.s.Text()
		e.comm.Name, e.hasComm = r.intern(t), true
	case "dtype":
		t, err = r.s.Text()
		e.comm.Type = r.intern(t)
	case "In msg nelems":
		e.comm.In, err = r.s.Int()
	case "Out msg nelems":
		e.comm.Out, err = r.s.Int()
	case "In split size":
		e.comm.InSplit, _, err = r.s.Ints()
	case "Out split size":
		e.comm.OutSplit, _, err = r.s.Ints()
	case "Group size":
		e.comm.Size, err = r.int32()
	case "Process Group Name":
		t, err = r.s.Text()
		e.groupName = append(e.groupName, t...)
	case "Process Group Description":
		t, err = r.s.Text()
		e.groupDesc = append(e.groupDesc, t...)
	case "Process Group Ranks":
		e.ranks, e.cut, err = r.s.Ints()
	case "Rank":
		e.comm.Root, err = r.int32()
	case "Src Rank", "Dst Rank":
		var n int32
		if n, err = r.int32(); n >= 0 {
			e.comm.Root = n
		}
	default:
		return r.s.Skip()
	}
	return err
}

func (r *reader) int32() (int32, error) {
	n, err := r.s.Int()
	return int32(min(max(n, -1<<31), 1<<31-1)), err
}

// product multiplies an array of integers: blocks of a grid.
func (r *reader) product() (int64, error) {
	if r.s.Peek() != '[' {
		return 0, r.s.Skip()
	}
	p := int64(1)
	err := r.s.Array(func(int) error {
		n, err := r.s.Int()
		if n < 0 || n > 1<<31 || p > 1<<31 {
			n = 0
		}
		p *= n
		return err
	})
	return min(p, 1<<31-1), err
}

// intern returns the one stored copy of a text.
func (r *reader) intern(t []byte) string {
	return r.t.Names[r.name(t)]
}

func (r *reader) name(t []byte) int32 {
	i, ok := r.names[string(t)]
	if !ok {
		i = int32(len(r.t.Names))
		n := string(t)
		r.names[n] = i
		r.t.Names = append(r.t.Names, n)
	}
	return i
}

func (r *reader) thread() int32 {
	i, ok := r.threads[string(r.e.tid)]
	if !ok {
		i = int32(len(r.threads))
		r.threads[string(r.e.tid)] = i
	}
	return i
}

// keep stores the event r.e if a reconstruction needs it.
func (r *reader) keep() {
	e := &r.e
	if e.ph != 'X' {
		return
	}
	switch string(e.cat) {
	case "kernel", "Kernel", "gpu_memcpy", "Memcpy", "gpu_memset", "Memset":
		if r.timed() {
			r.keepOp()
		}
	case "cuda_runtime", "cuda_driver", "Runtime", "hip_runtime", "hip_driver":
		if kind, ok := callKind(e.name); ok && r.timed() {
			r.t.Calls = append(r.t.Calls, Call{e.ts, e.dur, uint32(e.corr), r.thread(), kind,
				bytes.HasSuffix(e.name, []byte("WithFlags"))})
		}
	case "cuda_sync":
		if kind, ok := syncKind(e.name); ok && r.timed() {
			r.t.Syncs = append(r.t.Syncs, Sync{Start: e.ts, Dur: e.dur, Corr: uint32(e.corr), Kind: kind,
				Stream: int32(e.stream),
				WaitOn: int32(e.waitOn), Event: e.evID, RecordCorr: e.record})
		}
	case "cpu_op", "Operator", "user_annotation":
		switch {
		case e.hasComm && r.timed():
			r.keepComm()
			r.t.Comms[len(r.t.Comms)-1].Thread = r.thread()
		case bytes.HasPrefix(e.name, []byte("ProfilerStep#")) && r.timed():
			r.t.Steps = append(r.t.Steps, Step{string(e.name), e.ts, e.dur, r.thread()})
		}
	}
}

// Bounds of times, in nanoseconds: 146 years before and after 1970 or a machine's
// start, and 13 days that an event takes.
const (
	maxMoment = 1 << 62
	maxDur    = 1 << 50
)

// timed reports whether an event has its times; those without are counted.
func (r *reader) timed() bool {
	e := &r.e
	if e.hasTs && e.hasDur && e.dur >= 0 && e.dur <= maxDur && e.ts > -maxMoment && e.ts < maxMoment {
		return true
	}
	r.bad++
	return false
}

func (r *reader) keepOp() {
	e := &r.e
	o := Op{Start: e.ts, Dur: e.dur, Corr: uint32(e.corr), Name: r.name(e.name), Stream: int32(e.stream),
		Blocks: int32(e.blocks), Threads: int32(e.thread), Bytes: e.bytes,
		Shared: int32(min(e.shared, 1<<30)), Regs: uint16(min(max(e.regs, 0), 1<<16-1))}
	if !e.hasStream {
		n, _ := jsonscan.ParseInt(bytes.TrimPrefix(e.tid, []byte("stream ")))
		o.Stream = int32(n)
	}
	o.Class = class(string(e.cat), r.t.Names[o.Name])
	if e.hasComm {
		r.keepComm()
		o.Comm = int32(len(r.t.Comms))
	}
	r.t.Ops = append(r.t.Ops, o)
}

func (r *reader) keepComm() {
	e := &r.e
	c := e.comm
	c.Start, c.Dur, c.External, c.Thread = e.ts, e.dur, uint32(e.external), -1
	if len(e.groupName) > 0 {
		if i, ok := r.groups[string(e.groupName)]; ok && !r.t.Groups[i].Cut {
			c.Group = i
		} else if c.Name != "wait" {
			c.Group = r.group(Group{string(e.groupName), string(e.groupDesc), ranks(e.ranks), int(c.Size),
				e.cut})
		}
	}
	r.t.Comms = append(r.t.Comms, c)
}

// class returns the class of a GPU operation by its category and name.
func class(cat, name string) Class {
	switch {
	case strings.EqualFold(strings.TrimPrefix(cat, "gpu_"), "memcpy"):
		return Memcpy
	case strings.EqualFold(strings.TrimPrefix(cat, "gpu_"), "memset"):
		return Memset
	case strings.HasPrefix(name, "ncclDevKernel"), strings.HasPrefix(name, "ncclKernel"),
		strings.HasPrefix(name, "ncclSymk"), strings.HasPrefix(name, "ncclSymDevKernel"):
		return NCCL
	}
	for _, word := range []string{"dpsk::ep::", "deep_ep::", "nvshmem", "cross_device_reduce", "one_shot_",
		"two_shot_", "multimem", "mscclpp"} {
		if strings.Contains(name, word) {
			return Foreign
		}
	}
	return Kernel
}

// callKind classifies a runtime call by its name (cuda…, cu…, hip…).
func callKind(name []byte) (CallKind, bool) {
	n := name
	for _, p := range []string{"cuda", "cu", "hip"} {
		if rest, ok := bytes.CutPrefix(name, []byte(p)); ok {
			n = rest
			break
		}
	}
	has := func(p string) bool { return bytes.HasPrefix(n, []byte(p)) }
	switch {
	case has("GraphLaunch"):
		return GraphLaunch, true
	case has("Launch"), has("ExtLaunch"), has("ExtModuleLaunch"), has("ModuleLaunch"), has("Memcpy"),
		has("Memset"):
		return Launch, true
	case has("EventRecord"):
		return Record, true
	case has("StreamWaitEvent"):
		return WaitEvent, true
	case has("EventQuery"):
		return Query, true
	case has("EventSynchronize"):
		return SyncEvent, true
	case has("StreamSynchronize"):
		return SyncStream, true
	case has("DeviceSynchronize"), has("CtxSynchronize"):
		return SyncDevice, true
	case has("Malloc"), has("Free"), has("HostAlloc"), has("ModuleLoad"), has("LibraryLoad"):
		return OtherCall, true
	}
	return 0, false
}

func syncKind(name []byte) (CallKind, bool) {
	switch string(name) {
	case "Stream Wait Event":
		return WaitEvent, true
	case "Event Sync":
		return SyncEvent, true
	case "Stream Sync":
		return SyncStream, true
	case "Context Sync":
		return SyncDevice, true
	}
	return 0, false
}
