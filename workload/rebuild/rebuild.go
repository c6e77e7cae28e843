package rebuild

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/kineto"
)

// Options select the parts that are reconstructed.
type Options struct {
	// Symmetric assigns the program of the first recorded rank to ranks without a recording. It requires that
	// all communicators span all ranks.
	Symmetric bool
	// Partial accepts missing ranks, for inspection: the result cannot be executed.
	Partial bool
	// Sizes lists, by rank and in order, the calls that other recordings have: Flight Recorder entries or log
	// lines. They supply the arguments of kernels without any, such as those in CUDA graphs.
	Sizes map[int][]Sized
}

// Sized is a call with its arguments from another recording.
type Sized struct {
	Name  string // as Kineto spells it
	Type  string
	In    int64 // elements
	Out   int64
	Group string // name; empty for the default group
}

// Result is a rebuilt program, with notes on what was concluded and how surely.
type Result struct {
	Program *workload.Program
	// Steps are the recorded iterations: durations on average over ranks.
	Steps []Step
	// Clocks lists the clock offsets of the recorded ranks.
	Clocks []Clock
	// Origin is the recorded time, in nanoseconds, that is 0 in the program.
	Origin int64
	// Notes are for a person: what was inferred, dropped or missing.
	Notes []string
	// Waits counts how the sources of waits between streams were found.
	Waits WaitCounts
	// GPU is the name of the devices, NCCL the version of the library.
	GPU, NCCL string
}

// Step is a recorded iteration (ProfilerStep#N) with its host time, mean and maximum over ranks.
type Step struct {
	Name string
	Mean units.Time // of the host's time between its beginning and end
	Max  units.Time
}

// Clock is the offset of a rank's clock to the first rank's.
type Clock struct {
	Rank     int
	Offset   int64 // ns to subtract from the rank's times
	Residual int64 // ns: median deviation of the ends of collectives afterwards
	Samples  int
}

// WaitCounts counts the waits by the way in which their source was found.
type WaitCounts struct {
	Recorded  int // the recording names the event's record
	Adjacent  int // the record is the call before the wait
	Watchdog  int // the process group's watchdog asked for the same event
	Guessed   int // by order
	Disproved int // dropped: the waiting operation began before
	Unknown   int
}

// MissingRanksError reports ranks without a recording.
type MissingRanksError struct {
	Missing []int
	World   int
	Why     string // why the others cannot be taken for them
}

// Error names the ranks and the remedy.
func (e *MissingRanksError) Error() string {
	shown := e.Missing[:min(len(e.Missing), 8)]
	more := ""
	if n := len(e.Missing) - len(shown); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("the job has %d ranks, of which %s%s have no recording; %s", e.World,
		strings.Trim(fmt.Sprint(shown), "[]"), more, e.Why)
}

// maxWorld bounds the ranks of a job: more than any has had, and so few that what a damaged
// file says takes no memory.
const maxWorld = 1 << 20

// WorldError reports a recording of more ranks than a job can have.
type WorldError struct{ World int }

// Error states the number of ranks and its source.
func (e *WorldError) Error() string {
	return fmt.Sprintf("a job of %d ranks; distributedInfo of a recording has rank and world_size, at most "+
		"%d", e.World, maxWorld)
}

// RankTwiceError reports two recordings of one rank.
type RankTwiceError struct {
	Rank        int // -1: none of both says its rank
	First, Next string
}

// Error names both files.
func (e *RankTwiceError) Error() string {
	if e.Rank < 0 {
		return fmt.Sprintf("neither %s nor %s says which rank it is of (distributedInfo, or a name such as "+
			"rank0.json); give one of them, or name them so", e.First, e.Next)
	}
	return fmt.Sprintf("%s and %s are both of rank %d; give the recordings of one run", e.First, e.Next,
		e.Rank)
}

// Job reconstructs a job from the recordings of its ranks. A recording without a rank must be the only one.
func Job(traces []*kineto.Trace, o Options) (*Result, error) {
	j := &job{o: o, res: &Result{}}
	if err := j.open(traces); err != nil {
		return nil, err
	}
	for _, r := range j.ranks {
		r.launches()
		r.assign(o.Sizes[r.rank])
	}
	j.groups()
	j.align()
	for _, r := range j.ranks {
		r.waits(&j.res.Waits)
	}
	j.kinds()
	j.alone()
	j.emit()
	if err := j.complete(); err != nil {
		return nil, err
	}
	j.summarise()
	return j.res, nil
}

// job holds the state of a reconstruction.
type job struct {
	o     Options
	ranks []*rank
	world int
	res   *Result
	comms []*group
	calls callTable
	p     *workload.Program
}

// open orders the recordings by rank and finds what each covers.
func (j *job) open(traces []*kineto.Trace) error {
	if len(traces) == 0 {
		return fmt.Errorf("there are no recordings")
	}
	sorted := slices.Clone(traces)
	slices.SortStableFunc(sorted, func(a, b *kineto.Trace) int { return cmp.Compare(a.Rank, b.Rank) })
	for i, t := range sorted {
		if i > 0 && max(t.Rank, 0) == max(sorted[i-1].Rank, 0) {
			return &RankTwiceError{max(t.Rank, sorted[i-1].Rank), sorted[i-1].File, t.File}
		}
		j.world = max(j.world, t.World, t.Rank+1, 1)
		if t.World == 0 {
			j.world = max(j.world, largest(t.Groups))
		}
		r := &rank{t: t, rank: max(t.Rank, 0), streams: map[int32]*stream{}, threads: map[int32]*thread{}}
		if len(t.Ops) == 0 {
			r.note("no operations of a GPU were recorded")
		}
		j.ranks = append(j.ranks, r)
		j.res.Notes = append(j.res.Notes, t.Notes...)
	}
	if j.world > maxWorld {
		return &WorldError{j.world}
	}
	j.res.GPU, j.res.NCCL = sorted[0].GPU, sorted[0].NCCL
	return nil
}

// largest returns the number of ranks that the process groups of a recording imply.
func largest(groups []kineto.Group) int {
	most := 0
	for _, g := range groups {
		most = max(most, g.Size, len(g.Ranks))
		for _, r := range g.Ranks {
			most = max(most, int(min(max(r, 0), maxWorld))+1)
		}
	}
	return most
}

// complete assigns the first rank's program to ranks without a recording, or returns the reason why it
// cannot.
func (j *job) complete() error {
	p := j.p
	p.Of = make([]int32, j.world)
	for r := range p.Of {
		p.Of[r] = -1
	}
	for i, r := range j.ranks {
		p.Of[r.rank] = int32(i)
	}
	var missing []int
	for r, i := range p.Of {
		if i < 0 {
			missing = append(missing, r)
			p.Of[r] = 0
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if j.o.Partial {
		incomplete := MissingRanksError{missing, j.world, "what is shown is of the others; to replay it " +
			"give them too, or --symmetric where all ranks do the same"}
		j.res.Notes = append(j.res.Notes, incomplete.Error())
		return nil
	}
	if !j.o.Symmetric {
		return &MissingRanksError{missing, j.world,
			"give them too, or --symmetric where all ranks do the same"}
	}
	for i := range p.Comms {
		if p.Comms[i].Ranks != nil {
			return &MissingRanksError{missing, j.world,
				fmt.Sprintf("--symmetric needs communicators of all ranks, and %s is none", p.Comms[i].Name)}
		}
	}
	for i := range p.Calls {
		if f := p.Calls[i].Func; f == coll.Send || f == coll.Recv {
			return &MissingRanksError{missing, j.world, "--symmetric needs calls that all ranks issue in " +
				"the same way, and there are sends and receives"}
		}
	}
	j.res.Notes = append(j.res.Notes, fmt.Sprintf("%d ranks without a recording do what rank %d does",
		len(missing), j.ranks[0].rank))
	return nil
}

// summarise finds the durations of steps and collects the notes of ranks.
func (j *job) summarise() {
	j.res.Program = j.p
	for _, r := range j.ranks {
		for i, s := range r.t.Steps {
			if i == len(j.res.Steps) {
				j.res.Steps = append(j.res.Steps, Step{Name: s.Name})
			}
			d := units.Time(s.Dur) * 1000
			j.res.Steps[i].Mean += d / units.Time(len(j.ranks))
			j.res.Steps[i].Max = max(j.res.Steps[i].Max, d)
		}
		for _, n := range r.notes {
			j.res.Notes = append(j.res.Notes, fmt.Sprintf("rank %d: %s", r.rank, n))
		}
	}
}
