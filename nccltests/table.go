package nccltests

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math"
	"strings"
)

// Version is the nccl-tests release whose layout is printed.
const Version = "2.19.6"

// Config is what the header says about a run.
type Config struct {
	Program      string // all_reduce_perf
	TestsVersion string // Version if empty
	NCCLHeaders  int    // 22809
	NCCLLibrary  int
	Threads      int
	GPUs         int
	MinBytes     int64
	MaxBytes     int64
	StepFactor   int64 // > 1: sizes grow by it, else by StepBytes
	StepBytes    int64
	Warmup       int
	Iters        int
	AggIters     int
	Check        int
	Graph        int
	Unalign      int
	Blocking     int
	ParallelInit bool
	CPUTime      bool // -C 1: the column is called cputime
	PerIter      bool // -I 1: rows have the spread of single iterations
	PerIterSkip  int  // -K
	Timestamps   bool // -S 1: rows say when they were measured
}

// Device is one rank's line of the header.
type Device struct {
	Rank, Group, PID int
	Host             string
	Device           int
	BusID            string // 0000:1b:00, without the function
	Name             string
}

// Measure is one half of a row.
type Measure struct {
	TimeUs, AlgBW, BusBW float64
	Wrong                int64
	Checked              bool       // false: N/A
	Missing              bool       // not measured: the numbers mean nothing
	Iters                *IterStats // of -I 1
}

// Row is one line of results. Extra holds the opt-in columns.
type Row struct {
	Size, Count int64
	Type, RedOp string
	Root        int
	Out, In     Measure
	Stamp       string // YYYY-MM-DD hh:mm:ss, of -S 1
	Extra       []string
}

// Summary ends a table.
type Summary struct {
	OutOfBounds int
	AvgBusBW    float64
	MinBW       float64 // NCCL_TESTS_MIN_BW; below 0: not asked for
	Error       string
	Memory      []MemoryUse // of -M 1
}

// MemoryUse is device memory by what it is for.
type MemoryUse struct {
	Name  string
	Bytes int64
}

// Failed reports whether nccl-tests would exit with status 7.
func (s *Summary) Failed() bool { return s.OutOfBounds != 0 || s.belowMin() }

func (s *Summary) belowMin() bool { return s.MinBW >= 0 && s.AvgBusBW < s.MinBW*0.9 }

// Column is an opt-in column to the right of nccl-tests' own.
type Column struct {
	Name, Unit string
	Width      int
}

// Table prints a table as it grows. Write errors are kept and returned by
// Finish.
type Table struct {
	Brief   bool // devices are counted, not listed
	w       *bufio.Writer
	columns []Column
}

// NewTable returns a Table on w; columns are printed after the 13 of
// nccl-tests, which parsers that split on white space then still find.
func NewTable(w io.Writer, columns ...Column) *Table {
	return &Table{w: bufio.NewWriter(w), columns: columns}
}

// Preface writes a comment line before everything else.
func (t *Table) Preface(line string) { fmt.Fprintf(t.w, "# %s\n", line) }

// Start writes the header (util.cu, writeDeviceReport and writeResultHeader).
func (t *Table) Start(c *Config, devices []Device) {
	version := cmp.Or(c.TestsVersion, Version)
	step, kind := c.StepBytes, "bytes"
	if c.StepFactor > 1 {
		step, kind = c.StepFactor, "factor"
	}
	fmt.Fprintf(t.w, "# nccl-tests version %s nccl-headers=%d nccl-library=%d\n", version, c.NCCLHeaders,
		c.NCCLLibrary)
	fmt.Fprintf(t.w, "# Collective test starting: %s\n", c.Program)
	fmt.Fprintf(t.w, "# nThread %d nGpus %d minBytes %d maxBytes %d step: %d(%s) warmup iters: %d iters: "+
		"%d agg iters: %d validation: %d graph: %d unalign: %d\n",
		c.Threads, c.GPUs, c.MinBytes, c.MaxBytes, step, kind, c.Warmup, c.Iters, c.AggIters, c.Check,
		c.Graph, c.Unalign)
	switch c.Blocking {
	case 1:
		t.Preface("Blocking Enabled: wait and barrier after each inner iteration (-m) ")
	case 2:
		t.Preface("Blocking Enabled: wait after each inner iteration (-m), no barrier ")
	case 3:
		t.Preface("Blocking Enabled: wait and barrier after each outer iteration (-n); time excludes " +
			"barrier ")
	}
	if c.PerIter {
		skips := ""
		if c.PerIterSkip > 0 {
			skips = fmt.Sprintf("; summary skips first %d iterations", c.PerIterSkip)
		}
		t.Preface("Per-Iteration Report: CUDA event timing; i_* uses max over process rows" + skips + " ")
	}
	if c.ParallelInit {
		t.Preface("Parallel Init Enabled: threads call into NcclInitRank concurrently ")
	}
	fmt.Fprint(t.w, "#\n# Using devices\n")
	t.devices(devices)
	t.heads(c)
	t.w.Flush() // kept by bufio and seen by Finish
}

// mostDevices is how many devices a table lists one by one, as nccl-tests does for all.
const mostDevices = 128

// devices writes a line for each device. Of more than mostDevices those of the first and the last host have
// one, and a line between them counts the others, of a brief table all; nccl-tests' JSON has all.
//
//	#  Rank  7 Group  0 Pid      0 on      node0 device  7 [0000:df:00] sm_90
//	#  ... ranks 8 to 1015 on 126 more hosts
//	#  Rank 1016 Group  0 Pid      0 on    node127 device  0 [0000:1b:00] sm_90
func (t *Table) devices(all []Device) {
	from, to, more := len(all), len(all), "more "
	switch {
	case t.Brief:
		from, more = 0, ""
	case len(all) > mostDevices:
		for from = 1; from < len(all) && all[from].Host == all[0].Host; {
			from++
		}
		for to = len(all) - 1; to > from && all[to-1].Host == all[to].Host; {
			to--
		}
	}
	hosts := map[string]bool{}
	for i, d := range all {
		if from <= i && i < to {
			if hosts[d.Host] = true; i == to-1 {
				fmt.Fprintf(t.w, "#  ... ranks %d to %d on %d %s%s\n", all[from].Rank, d.Rank,
					len(hosts), more, plural(len(hosts), "host", "hosts"))
			}
			continue
		}
		fmt.Fprintf(t.w, "#  Rank %2d Group %2d Pid %6d on %10s device %2d [%s] %s\n",
			d.Rank, d.Group, d.PID, d.Host, d.Device, d.BusID, d.Name)
	}
}

// halves are the columns of one half of a row, with their units.
func (c *Config) halves() (names, units string) {
	time := "time"
	if c.CPUTime {
		time = "cputime"
	}
	const four = "  %7s  %6s  %6s  %6s"
	names, units = fmt.Sprintf(four, time, "algbw", "busbw", "#wrong"), fmt.Sprintf(four, "(us)", "(GB/s)",
		"(GB/s)", "")
	if c.PerIter {
		const more = "  %7s  %7s  %7s  %7s"
		names += fmt.Sprintf(more, "i_min", "i_max", "i_p99", "i_cv%")
		units += fmt.Sprintf(more, "(us)", "(us)", "(us)", "(%)")
	}
	return names, units
}

func (t *Table) heads(c *Config) {
	over := "           out-of-place                       in-place          "
	if c.PerIter {
		over = "              out-of-place (+ per-iteration)                                in-place (+ " +
			"per-iteration)"
	}
	var names, units strings.Builder
	if c.Timestamps {
		fmt.Fprintf(&names, "%19s", "timestamp")
		fmt.Fprintf(&units, "%19s", "%Y-%m-%d %H:%M:%S")
	}
	for _, col := range t.columns {
		fmt.Fprintf(&names, "  %*s", col.Width, col.Name)
		fmt.Fprintf(&units, "  %*s", col.Width, col.Unit)
	}
	const left = "# %10s  %12s  %8s  %6s  %6s"
	name, unit := c.halves()
	fmt.Fprintf(t.w, "#\n"+left+"%s\n", "", "", "", "", "", over)
	fmt.Fprintf(t.w, left+"%s%s %s\n", "size", "count", "type", "redop", "root", name, name, names.String())
	fmt.Fprintf(t.w, left+"%s%s %s\n", "(B)", "(elements)", "", "", "", unit, unit, units.String())
}

// Row writes one line of results and flushes it, so that progress is seen.
func (t *Table) Row(r *Row) {
	fmt.Fprintf(t.w, "%12d  %12d  %8s  %6s  %6d", r.Size, r.Count, r.Type, r.RedOp, r.Root)
	t.measure(&r.Out)
	t.measure(&r.In)
	if r.Stamp != "" {
		fmt.Fprintf(t.w, "%21s", r.Stamp)
	}
	for i, x := range r.Extra {
		fmt.Fprintf(t.w, "  %*s", t.columns[i].Width, x)
	}
	t.w.WriteByte('\n')
	t.w.Flush()
}

func (t *Table) measure(m *Measure) {
	fmt.Fprintf(t.w, "  %7s  %6s  %6s", Float(m.TimeUs, 7), Float(m.AlgBW, 6), Float(m.BusBW, 6))
	if m.Checked {
		fmt.Fprintf(t.w, "  %6s", shortest(float64(m.Wrong)))
	} else {
		t.w.WriteString("    N/A")
	}
	if m.Iters != nil {
		t.w.WriteString(m.Iters.columns())
	}
}

// Finish writes the footer and returns the first write error.
func (t *Table) Finish(c *Config, s *Summary) error {
	verdict := func(failed bool) string {
		if failed {
			return "FAILED"
		}
		return "OK"
	}
	fmt.Fprintf(t.w, "# %-20s : %d %s\n", "Out of bounds values", s.OutOfBounds, verdict(s.OutOfBounds != 0))
	floor := ""
	if s.MinBW >= 0 {
		floor = verdict(s.belowMin())
	}
	fmt.Fprintf(t.w, "# %-20s : %s %s\n", "Avg bus bandwidth", shortest(s.AvgBusBW), floor)
	fmt.Fprintf(t.w, "#\n# Collective test concluded: %s\n", c.Program)
	if len(s.Memory) > 0 {
		t.memory(s.Memory)
	}
	fmt.Fprint(t.w, "#\n")
	if s.Error != "" {
		fmt.Fprintf(t.w, "# error: %s\n", s.Error)
	} else {
		t.w.WriteByte('\n')
	}
	return t.w.Flush()
}

// memory prints what is taken, and the sum (util.cu:820).
func (t *Table) memory(list []MemoryUse) {
	var b strings.Builder
	sum := int64(0)
	for i, m := range list {
		if i > 0 {
			b.WriteString("| ")
		}
		fmt.Fprintf(&b, "%s %s ", m.Name, amount(m.Bytes))
		sum += m.Bytes
	}
	fmt.Fprintf(t.w, "# %-20s : %s| Total  %s\n", "GPU memory usage", b.String(), amount(sum))
}

// amount prints bytes in the largest unit that gives a number of at least 1, with
// three digits.
func amount(bytes int64) string {
	v, unit := float64(bytes), " B"
	for _, u := range []struct {
		name string
		of   float64
	}{{" GB", 1 << 30}, {" MB", 1 << 20}, {" KB", 1 << 10}} {
		if math.Abs(v) >= u.of {
			v, unit = v/u.of, u.name
			break
		}
	}
	decimals := 0
	switch {
	case math.Abs(v) < 10:
		decimals = 2
	case math.Abs(v) < 100:
		decimals = 1
	}
	return fmt.Sprintf("%.*f%s", decimals, v, unit)
}

// Float prints a number in a column: as many of two decimals as fit, else an
// exponent (util.cu:487).
func Float(v float64, width int) string {
	for decimals := 2; decimals >= 0; decimals-- {
		if s := fmt.Sprintf("%*.*f", width, decimals, v); len(s) <= width {
			return s
		}
	}
	decimals := 0
	if width >= 7 {
		decimals = 1
	}
	s := fmt.Sprintf("%*.*e", width, decimals, v)
	return s[:min(len(s), width)]
}

// shortest prints as C's %g: six significant digits, no trailing zeros.
func shortest(v float64) string {
	s := fmt.Sprintf("%.6g", v)
	return s
}
