package simai

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// AICBFile is a parsed AICB log.
type AICBFile struct {
	Ranks int // of the job, from [rank0 ~ rank127]; 0 where the file does not say
	Rows  []AICBRow
	Notes []string
}

// AICBRow is a line of the log: a communication or a computation.
type AICBRow struct {
	Line    int
	Comm    string // all_reduce, epoch_end … without CommType.
	Group   string // dp_group … without CommGroup.
	Size    int    // of the group; 0 where the file does not say
	Bytes   int64
	Stage   string
	Dst     int     // -1 none
	Src     int     // -1 none
	Elapsed float64 // ms; 0 where it did not run
	Count   int
}

const header = "comm_type,comm_group,comm_group_size,msg_size,"

// aicbMaxRows is the largest accepted number of lines.
const aicbMaxRows = 1 << 22

// RecogniseAICB reports whether a text begins like such a log.
func RecogniseAICB(head []byte) bool {
	if bytes.HasPrefix(head, []byte("[rank")) {
		_, head, _ = bytes.Cut(head, []byte("\n"))
	}
	return bytes.HasPrefix(head, []byte(header))
}

// ReadAICB parses a log. It returns a *fail.FileError, or an error of in.
func ReadAICB(in io.Reader, file string) (*AICBFile, error) {
	s := bufio.NewScanner(in)
	s.Buffer(make([]byte, 64<<10), 1<<20)
	f := &AICBFile{}
	line := 0
	begun := false
	for s.Scan() {
		line++
		text := strings.TrimRight(s.Text(), "\r ")
		switch {
		case text == "":
		case strings.HasPrefix(text, "[rank"):
			if a, b, ok := strings.Cut(strings.Trim(text, "[]"), "~"); ok {
				lo, err1 := strconv.Atoi(strings.TrimPrefix(strings.TrimSpace(a), "rank"))
				hi, err2 := strconv.Atoi(strings.TrimPrefix(strings.TrimSpace(b), "rank"))
				if err1 != nil || err2 != nil || lo != 0 || hi < 0 || hi >= 1<<24 {
					return nil, fail.At(file, line, 1, fmt.Sprintf("%q names no ranks", text),
						"write [rank0 ~ rank127]")
				}
				f.Ranks = hi + 1
			}
		case strings.HasPrefix(text, header):
			begun = true
		case !begun:
			return nil, fail.At(file, line, 1, "this is no log of AICB", "the header "+
				strings.TrimSuffix(header, ",")+",… is expected")
		case len(f.Rows) >= aicbMaxRows:
			return nil, fail.At(file, line, 1, fmt.Sprintf("more than %d lines", aicbMaxRows), "")
		default:
			r, err := row(text, file, line)
			if err != nil {
				return nil, err
			}
			f.Rows = append(f.Rows, r)
		}
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if !begun {
		return nil, fail.At(file, max(line, 1), 1, "this is no log of AICB", "the header "+
			strings.TrimSuffix(header, ",")+",… is expected")
	}
	return f, nil
}

// row parses a line of twelve fields; "additional" may contain commas.
func row(text, file string, line int) (AICBRow, error) {
	fields := strings.Split(text, ",")
	if len(fields) < 12 {
		return AICBRow{}, fail.At(file, line, 1, fmt.Sprintf("%d fields, 12 are expected", len(fields)), "")
	}
	// "additional" may contain commas
	fields = append(fields[:8:8], fields[len(fields)-4:]...)
	col := 1
	at := make([]int, len(fields))
	for i, x := range fields {
		at[i] = col
		col += len(x) + 1
	}
	r := AICBRow{Line: line, Comm: strings.TrimPrefix(fields[0], "CommType."),
		Group: strings.TrimPrefix(fields[1], "CommGroup."), Stage: fields[4], Dst: -1, Src: -1, Count: 1}
	number := func(i int, what string, most int64) (int64, bool, error) {
		if fields[i] == "None" || fields[i] == "" {
			return 0, false, nil
		}
		f, err := strconv.ParseFloat(fields[i], 64)
		if err != nil || !(f >= 0 && f <= float64(most)) {
			return 0, false, fail.At(file, line, at[i], fmt.Sprintf("%q is no %s", fields[i], what),
				"write a number, or None")
		}
		return int64(f), true, nil
	}
	var n int64
	var ok bool
	var err error
	if n, _, err = number(2, "size of a group", 1<<24); err == nil {
		r.Size = int(n)
		r.Bytes, _, err = number(3, "size in bytes", 1<<50)
	}
	if err == nil {
		if n, ok, err = number(5, "rank", 1<<24); ok {
			r.Dst = int(n)
		}
	}
	if err == nil {
		if n, ok, err = number(6, "rank", 1<<24); ok {
			r.Src = int(n)
		}
	}
	if err == nil {
		if n, ok, err = number(11, "count", 1<<20); ok {
			r.Count = int(n)
		}
	}
	if err != nil {
		return r, err
	}
	if e, err := strconv.ParseFloat(fields[8], 64); err == nil && e > 0 && e < 1e9 {
		r.Elapsed = e
	}
	return r, nil
}

// AICBOptions supplies what the file does not state.
type AICBOptions struct {
	Ranks int // instead of the file's; 0 for those
}

// aicbMaxSteps is the largest number of steps of a program, over all ranks.
const aicbMaxSteps = 40_000_000

// Program converts a log to a program: every rank makes the log's calls in order, in its own groups, with
// only the recorded computations between them.
func (f *AICBFile) Program(o AICBOptions) (*workload.Program, error) {
	sizes := map[string]int{}
	for _, r := range f.Rows {
		sizes[r.Group] = max(sizes[r.Group], r.Size)
	}
	ranks := f.Ranks
	if o.Ranks > 0 {
		ranks = o.Ranks
	}
	if ranks == 0 {
		ranks = max(sizes["dp_group"], 1) * max(sizes["tp_group"], 1) * max(sizes["pp_group"], 1)
		f.note("the file does not name its ranks; by its groups they are %d", ranks)
	}
	if ranks*len(f.Rows) > aicbMaxSteps {
		return nil, fmt.Errorf("%d ranks of %d calls are more than %d steps; give fewer ranks with --ranks",
			ranks, len(f.Rows), aicbMaxSteps)
	}
	expert := sizes["ep_group"]
	if expert == 0 && slices.ContainsFunc(f.Rows, func(r AICBRow) bool { return r.Group == "ep_group" }) {
		expert = max(sizes["dp_group"], 1)
		f.note("the file does not say how large expert groups are; %d is assumed, as data parallel groups",
			expert)
	}
	p := &workload.Program{Of: make([]int32, ranks)}
	g, err := newGrid(p, ranks, sizes["tp_group"], expert, sizes["pp_group"])
	if err != nil {
		return nil, err
	}
	times := f.times(g)
	for r := range ranks {
		b := aicbBuilder{f: f, g: g, p: p, rank: r, times: times}
		b.write()
		p.Of[r] = int32(r)
	}
	return p, nil
}

func (f *AICBFile) note(format string, args ...any) {
	if n := fmt.Sprintf(format, args...); !slices.Contains(f.Notes, n) {
		f.Notes = append(f.Notes, n)
	}
}

// shape identifies calls whose recorded times are combined: the same function, group and size.
type shape struct {
	comm, group string
	bytes       int64
}

// times returns the median recorded time of each shape.
func (f *AICBFile) times(*Grid) map[shape]units.Time {
	all := map[shape][]float64{}
	for _, r := range f.Rows {
		if r.Elapsed > 0 {
			k := shape{r.Comm, r.Group, r.Bytes}
			all[k] = append(all[k], r.Elapsed)
		}
	}
	out := map[shape]units.Time{}
	for k, v := range all { //lint:sorted each entry is computed by itself
		slices.Sort(v)
		out[k] = units.Time(v[len(v)/2] * 1e9)
	}
	return out
}

// families maps the log's names of groups to kinds of groups.
var families = map[string]groupKind{"dp_group": Data, "tp_group": Tensor, "pp_group": Pipeline,
	"ep_group":    Expert,
	"ep_dp_group": DataExpert, "ep_tp_group": Tensor, "all": All, "None": All}

// funcs maps the log's names of calls to functions.
var funcs = map[string]coll.Func{"all_reduce": coll.AllReduce, "all_gather": coll.AllGather,
	"all_gather_into_tensor": coll.AllGather, "reduce_scatter": coll.ReduceScatter,
	"reduce_scatter_tensor": coll.ReduceScatter, "broadcast": coll.Broadcast, "reduce": coll.Reduce,
	"all_to_all": coll.AllToAll, "all_to_all_single": coll.AllToAll,
	"gather": coll.Gather, "scatter": coll.Scatter, "barrier": coll.AllReduce}

type aicbBuilder struct {
	f     *AICBFile
	g     *Grid
	p     *workload.Program
	rank  int
	times map[shape]units.Time
}

func (b *aicbBuilder) write() {
	list := workload.List{Name: fmt.Sprintf("rank%d", b.rank)}
	epoch := 0
	for i := range b.f.Rows {
		r := &b.f.Rows[i]
		switch {
		case r.Comm == "epoch_end":
			epoch++
			b.p.Marks = append(b.p.Marks, workload.Mark{List: int32(len(b.p.Lists)),
				Step: int32(len(list.Steps)), Name: fmt.Sprintf("epoch%d", epoch)})
		case r.Comm == "computation":
			list.Steps = append(list.Steps, workload.Step{Kind: workload.Compute,
				Time: units.Time(r.Elapsed * 1e9)})
		default:
			if s, ok := b.call(r); ok {
				for range max(min(r.Count, 1000), 1) {
					list.Steps = append(list.Steps, s)
				}
			}
		}
	}
	b.p.Lists = append(b.p.Lists, list)
}

// call converts a line to a step. ok is false for a line that moves no data, and for one that cannot be
// converted, which is noted.
func (b *aicbBuilder) call(r *AICBRow) (workload.Step, bool) {
	f, known := funcs[r.Comm]
	family, in := families[r.Group]
	if !known || !in {
		b.f.note("%s on %s cannot be said and was left out (line %d): the log is of one rank, which does "+
			"not show what the others do", r.Comm, r.Group, r.Line)
		return workload.Step{}, false
	}
	bytes := r.Bytes
	if r.Comm == "barrier" {
		bytes = 4
	}
	if bytes == 0 || b.g.Size(family) < 2 {
		return workload.Step{}, false
	}
	comm, _ := b.g.Comm(family, b.rank)
	c := workload.Call{Comm: comm, Func: f, Recorded: b.times[shape{r.Comm, r.Group, r.Bytes}]}
	if f.Rooted() && r.Src > 0 && r.Src < b.g.Size(family) {
		c.Root = int32(r.Src)
	}
	c.Count, c.Type = elementsOf(f, bytes, b.g.Size(family))
	return workload.Step{Kind: workload.Issue, Call: b.g.Call(c)}, true
}
