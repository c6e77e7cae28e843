package kineto

// Trace is the recording of one rank.
type Trace struct {
	// File is the file's name in errors.
	File string
	// Rank and World are the process's place in the job; Rank is -1 where the file
	// has no distributedInfo.
	Rank, World int
	// NCCL is the version of the library, "2.28.9", or empty.
	NCCL string
	// GPU is the name of the devices, "NVIDIA H200", and SMs the number of multiprocessors of one; empty and
	// 0 if the file has neither.
	GPU string
	SMs int
	// Groups lists the process groups: those of pg_config, then others that calls name.
	Groups []Group
	// GroupCount is the number of process groups of the job, 0 if unknown; the file lists only the groups of
	// its rank.
	GroupCount int
	// Names lists the distinct names of operations; Op.Name is an index into it.
	Names []string
	// Ops are kernels, copies and fills of the GPU, by beginning.
	Ops []Op
	// Calls are the runtime calls that matter, by thread and then by beginning.
	Calls []Call
	// Comms are the calls of process groups (record_param_comms), by beginning.
	Comms []Comm
	// Syncs lists the waits that the profiler recorded (category cuda_sync).
	Syncs []Sync
	// Steps lists the iterations: annotations ProfilerStep#N.
	Steps []Step
	// Notes lists what the file lacks and what was skipped, as text for users.
	Notes []string
	// Truncated is set when the file ends before its last event does.
	Truncated bool
	// Events is the number of events of the file.
	Events int
}

// Group is a process group, by its description in the trace.
type Group struct {
	Name, Desc string
	// Ranks are the members, ranks of the job; nil when all are.
	Ranks []int32
	Size  int
	// Cut is set where the file has only the first members.
	Cut bool
}

// Class is the kind of a GPU operation: kernel, copy, ….
type Class uint8

// Classes of operations.
const (
	Kernel  Class = iota
	NCCL          // a kernel of NCCL
	Foreign       // a kernel of another communication library
	Memcpy
	Memset
)

// Op is one operation of a GPU.
type Op struct {
	Start, Dur int64  // ns
	Corr       uint32 // of the runtime call that launched it; 0 none
	Name       int32  // index into Names
	Stream     int32
	Blocks     int32  // of the grid; 0 unknown
	Threads    int32  // of a block
	Bytes      int64  // of copies and fills
	Comm       int32  // index+1 into Trace.Comms of the arguments on the kernel itself; 0 none
	Shared     int32  // bytes of shared memory of a block
	Regs       uint16 // registers of a thread
	Class      Class
}

// CallKind is the kind of a runtime call: a launch, an event call or a synchronization.
type CallKind uint8

// Kinds of runtime calls.
const (
	Launch      CallKind = iota // a kernel, copy or fill
	GraphLaunch                 // a CUDA graph
	Record                      // cudaEventRecord
	WaitEvent                   // cudaStreamWaitEvent: the stream waits, not the thread
	Query                       // cudaEventQuery
	SyncEvent                   // cudaEventSynchronize: the thread waits
	SyncStream                  // cudaStreamSynchronize
	SyncDevice                  // cudaDeviceSynchronize
	OtherCall                   // takes time and does none of these
)

// Call is a CUDA runtime or driver call of a host thread.
type Call struct {
	Start  int64 // ns
	Dur    int64
	Corr   uint32
	Thread int32 // index into the threads in order of appearance
	Kind   CallKind
	Flags  bool // cudaEventRecordWithFlags, which PyTorch calls, in distinction to NCCL
}

// Sync is a wait as CUPTI recorded it.
type Sync struct {
	Start, Dur   int64
	Corr         uint32 // of the runtime call
	Kind         CallKind
	Stream       int32 // that waits, -1 none
	WaitOn       int32 // stream that is waited for, -1 unknown
	Event        int64 // identifier of the CUDA event
	RecordCorr   int64 // correlation of the cudaEventRecord; -1 unknown
	RecordStream int32
}

// Comm is one call of a process group.
type Comm struct {
	Start, Dur int64
	External   uint32
	Thread     int32  // -1 on a kernel's own arguments
	Name       string // allreduce, _allgather_base, all_to_allv, send, wait …
	Type       string // Float, BFloat16 …; lower case c10 names are kept as they are
	In, Out    int64  // elements
	InSplit    []int64
	OutSplit   []int64
	Group      int32 // index into Groups; -1 unknown
	Root       int32 // root or peer, a rank of the group; -1 unknown
	Size       int32 // members of the group; 0 unknown
}

// Step is an iteration as the profiler's schedule marks it.
type Step struct {
	Name       string
	Start, Dur int64 // ns
	Thread     int32
}
