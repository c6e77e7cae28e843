package load

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/chakra"
	"github.com/simccl/simccl/workload/flight"
	"github.com/simccl/simccl/workload/internal/torch"
	"github.com/simccl/simccl/workload/nccllog"
	"github.com/simccl/simccl/workload/rebuild"
	"github.com/simccl/simccl/workload/simai"
)

// MixedError is a set of files that are different jobs.
type MixedError struct{ First, Second string }

// Error names the two files that belong to different jobs.
func (e *MixedError) Error() string {
	return fmt.Sprintf("%s and %s are two jobs; give the files of one run", e.First, e.Second)
}

// job combines the parts into one job. Recordings take precedence, as they have times; files without times
// complete them.
func (p *parts) job() (*Job, error) {
	j := &Job{Meta: p.meta, Notes: p.notes}
	rankTraces(p.kineto)
	count(p.et)
	count(p.chakra)
	count(p.flight)
	var err error
	switch {
	case len(p.kineto) > 0:
		err = p.recorded(j)
	case len(p.native) > 0:
		j.Program, j.Format = p.native[0], Native
		j.Meta.GPU = cmp.Or(j.Program.GPU.Name, j.Meta.GPU)
	case len(p.calls) > 0:
		j.Program, j.Format = p.calls[0].Program(), Calls
		j.Meta.NCCL = p.calls[0].NCCL
	case len(p.chakra) > 0:
		err = p.chakraJob(j)
	case len(p.simai) > 0:
		j.Format = SimAI
		j.Program, err = p.simai[0].Program(simai.Options{Ranks: p.o.Ranks})
		j.Notes = append(j.Notes, p.simai[0].Notes...)
	case len(p.aicb) > 0:
		j.Format = AICB
		j.Program, err = p.aicb[0].Program(simai.AICBOptions{Ranks: p.o.Ranks})
		j.Notes = append(j.Notes, p.aicb[0].Notes...)
	case len(p.goal) > 0:
		j.Format = GOAL
		j.Program, err = p.goal[0].Program()
		j.Notes = append(j.Notes, p.goal[0].Notes...)
	case len(p.flight) > 0:
		err = p.flightJob(j)
	case p.log.Calls() > 0:
		j.Format = Log
		err = keep(j)(p.log.Program())
	case len(p.et) > 0:
		err = p.etJob(j)
	case len(p.records) > 0:
		j.Format = Inspector
		err = keep(j)(nccllog.InspectorProgram(p.records))
	default:
		return nil, fmt.Errorf("there is no workload among %d files%s", len(p.files), p.named())
	}
	if err == nil {
		err = p.single(j.Format)
	}
	if err != nil {
		return nil, err
	}
	j.Files = p.files
	return j, nil
}

func (p *parts) named() string {
	if len(p.files) == 0 {
		return ""
	}
	return fmt.Sprintf(": %s is of format %s", p.files[0].Name, p.files[0].Format)
}

// alone lists the formats of which one file is a whole job.
var alone = []Format{Native, Calls, SimAI, AICB, GOAL, GOALBinary}

// single returns an error for two files each of which is a whole job, and marks the used one.
func (p *parts) single(used Format) error {
	first := ""
	for i := range p.files {
		f := &p.files[i]
		f.Used = f.Format == used || f.Format == Meta
		if slices.Contains(alone, f.Format) {
			if first != "" {
				return &MixedError{first, f.Name}
			}
			first = f.Name
		}
	}
	if first == "" {
		return nil
	}
	for _, f := range p.files {
		if f.Name != first && f.Format != Meta && f.Format != Times {
			return &MixedError{first, f.Name}
		}
	}
	return nil
}

// keep returns a function that stores a program and its notes in the job.
func keep(j *Job) func(p *workload.Program, notes []string, err error) error {
	return func(p *workload.Program, notes []string, err error) error {
		j.Program, j.Notes = p, append(j.Notes, notes...)
		return err
	}
}

// recorded reconstructs a job from Kineto's recordings.
func (p *parts) recorded(j *Job) error {
	j.Format, j.Traces = Kineto, p.kineto
	o := rebuild.Options{Symmetric: p.o.Symmetric, Partial: p.o.Partial && !p.o.Symmetric,
		Sizes: map[int][]rebuild.Sized{}}
	for rank, list := range p.log.Sizes() { //lint:sorted entries are independent
		for _, c := range list {
			o.Sizes[rank] = append(o.Sizes[rank], rebuild.Sized{Name: c.Name, Type: c.Type, In: c.In,
				Out: c.Out})
		}
	}
	// A dump has the whole run, a log the steps that it was switched on for.
	for _, d := range p.flight {
		if d.rank >= 0 && len(o.Sizes[d.rank]) == 0 {
			o.Sizes[d.rank] = sizes(d.part)
		}
	}
	res, err := rebuild.Job(p.kineto, o)
	if err != nil {
		return err
	}
	j.Rebuilt, j.Program = res, res.Program
	j.Notes = append(j.Notes, res.Notes...)
	j.Meta.GPU = cmp.Or(j.Meta.GPU, res.GPU)
	j.Meta.NCCL = cmp.Or(j.Meta.NCCL, res.NCCL)
	j.Meta.World = cmp.Or(j.Meta.World, len(res.Program.Of))
	return nil
}

// sizes returns the calls of a flight recorder's dump with their sizes.
func sizes(d *flight.Dump) (out []rebuild.Sized) {
	for i := range d.Entries {
		e := &d.Entries[i]
		if e.Name != "coalesced" && !e.P2P && e.Name != "all_reduce_barrier" {
			out = append(out, rebuild.Sized{Name: e.Name, Type: e.InType, In: flight.Elements(e.In),
				Out: flight.Elements(e.Out), Group: e.Group})
		}
	}
	return out
}

// byRank orders parts by the rank of their file name and refuses two of one rank.
// Parts without a rank are in the order of their names.
func byRank[T any](list []ranked[T], what string) ([]T, error) {
	slices.SortStableFunc(list, func(a, b ranked[T]) int { return cmp.Compare(a.rank, b.rank) })
	var out []T
	for i, x := range list {
		switch {
		case i > 0 && x.rank >= 0 && x.rank == list[i-1].rank:
			return nil, &rebuild.RankTwiceError{Rank: x.rank, First: list[i-1].name, Next: x.name}
		case x.rank >= 0 && x.rank != i:
			return nil,
				fmt.Errorf("%s: this is the %s of rank %d, and that of rank %d is not there; give those of "+
					"all ranks", x.name, what, x.rank, i)
		}
		out = append(out, x.part)
	}
	return out, nil
}

func (p *parts) chakraJob(j *Job) error {
	j.Format = Chakra
	p.largest(j)
	list, err := byRank(p.chakra, "trace")
	if err != nil {
		return err
	}
	pr, notes, err := chakra.Program(list, chakra.Options{Groups: p.groups, Ranks: p.o.Ranks})
	j.Program, j.Notes = pr, append(j.Notes, notes...)
	return err
}

// largest keeps the trace with the most nodes among traces of one rank in one archive: archives contain an
// example in addition to the trace.
func (p *parts) largest(j *Job) {
	var kept []ranked[*chakra.Trace]
	for _, t := range p.chakra {
		archive, _, in := strings.Cut(t.name, ".tar/")
		i := slices.IndexFunc(kept, func(o ranked[*chakra.Trace]) bool {
			return in && o.rank == t.rank && strings.HasPrefix(o.name, archive+".tar/")
		})
		if i < 0 {
			kept = append(kept, t)
			continue
		}
		small := t
		if len(t.part.Nodes) > len(kept[i].part.Nodes) {
			small, kept[i] = kept[i], t
		}
		j.Notes = append(j.Notes, small.name+" was passed over: "+kept[i].name+
			" is of the same rank and longer")
	}
	p.chakra = kept
}

func (p *parts) flightJob(j *Job) error {
	j.Format = FlightJSON
	// A rank may have left both forms of one dump.
	list := p.flight[:0:0]
	for _, d := range p.flight {
		if i := slices.IndexFunc(list, func(o ranked[*flight.Dump]) bool {
			return o.rank == d.rank && d.rank >= 0
		}); i < 0 || !sameDump(list[i].part, d.part) {
			list = append(list, d)
		}
	}
	dumps, err := byRank(list, "dump")
	if err != nil {
		return err
	}
	pr, notes, err := flight.Program(dumps)
	j.Program, j.Notes = pr, append(j.Notes, notes...)
	if err == nil && j.Meta.NCCL == "" {
		j.Meta.NCCL = dumps[0].NCCL
	}
	return err
}

// sameDump reports whether two dumps are one in two forms.
func sameDump(a, b *flight.Dump) bool {
	return len(a.Entries) == len(b.Entries) &&
		(len(a.Entries) == 0 || a.Entries[0].Created == b.Entries[0].Created &&
			a.Entries[len(a.Entries)-1].Created == b.Entries[len(b.Entries)-1].Created)
}

func (p *parts) etJob(j *Job) error {
	j.Format = TorchET
	if len(p.et) == 1 { // of any rank
		p.et[0].rank = -1
	}
	list, err := byRank(p.et, "execution trace")
	if err != nil {
		return err
	}
	ranks := p.o.Ranks
	if ranks == 0 {
		for _, t := range list {
			ranks = max(ranks, t.World)
		}
	}
	pr, notes, err := torch.Program(list, ranks, p.o.Symmetric || p.o.Partial)
	j.Program, j.Notes = pr, append(j.Notes, notes...)
	return err
}
