package nccltests

import (
	"bufio"
	"fmt"
	"io"
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
	Checked              bool // false: N/A
}

// Row is one line of results. Extra holds the opt-in columns.
type Row struct {
	Size, Count int64
	Type, RedOp string
	Root        int
	Out, In     Measure
	Extra       []string
}

// Summary ends a table.
type Summary struct {
	OutOfBounds int
	AvgBusBW    float64
	MinBW       float64 // NCCL_TESTS_MIN_BW; below 0: not asked for
	Error       string
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
	version := c.TestsVersion
	if version == "" {
		version = Version
	}
	step, kind := c.StepBytes, "bytes"
	if c.StepFactor > 1 {
		step, kind = c.StepFactor, "factor"
	}
	fmt.Fprintf(t.w, "# nccl-tests version %s nccl-headers=%d nccl-library=%d\n", version, c.NCCLHeaders, c.NCCLLibrary)
	fmt.Fprintf(t.w, "# Collective test starting: %s\n", c.Program)
	fmt.Fprintf(t.w, "# nThread %d nGpus %d minBytes %d maxBytes %d step: %d(%s) warmup iters: %d iters: %d agg iters: %d validation: %d graph: %d unalign: %d\n",
		c.Threads, c.GPUs, c.MinBytes, c.MaxBytes, step, kind, c.Warmup, c.Iters, c.AggIters, c.Check, c.Graph, c.Unalign)
	switch c.Blocking {
	case 1:
		t.Preface("Blocking Enabled: wait and barrier after each inner iteration (-m) ")
	case 2:
		t.Preface("Blocking Enabled: wait after each inner iteration (-m), no barrier ")
	case 3:
		t.Preface("Blocking Enabled: wait and barrier after each outer iteration (-n); time excludes barrier ")
	}
	if c.ParallelInit {
		t.Preface("Parallel Init Enabled: threads call into NcclInitRank concurrently ")
	}
	fmt.Fprint(t.w, "#\n# Using devices\n")
	for _, d := range devices {
		fmt.Fprintf(t.w, "#  Rank %2d Group %2d Pid %6d on %10s device %2d [%s] %s\n",
			d.Rank, d.Group, d.PID, d.Host, d.Device, d.BusID, d.Name)
	}
	t.heads(c)
	t.w.Flush() // kept by bufio and seen by Finish
}

func (t *Table) heads(c *Config) {
	time := "time"
	if c.CPUTime {
		time = "cputime"
	}
	var names, units strings.Builder
	for _, col := range t.columns {
		fmt.Fprintf(&names, "  %*s", col.Width, col.Name)
		fmt.Fprintf(&units, "  %*s", col.Width, col.Unit)
	}
	fmt.Fprintf(t.w, "#\n# %10s  %12s  %8s  %6s  %6s           out-of-place                       in-place          \n", "", "", "", "", "")
	const head = "# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s %s\n"
	fmt.Fprintf(t.w, head, "size", "count", "type", "redop", "root",
		time, "algbw", "busbw", "#wrong", time, "algbw", "busbw", "#wrong", names.String())
	fmt.Fprintf(t.w, head, "(B)", "(elements)", "", "", "",
		"(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", "", units.String())
}

// Row writes one line of results and flushes it, so that progress is seen.
func (t *Table) Row(r *Row) {
	fmt.Fprintf(t.w, "%12d  %12d  %8s  %6s  %6d", r.Size, r.Count, r.Type, r.RedOp, r.Root)
	t.measure(&r.Out)
	t.measure(&r.In)
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
	fmt.Fprintf(t.w, "#\n# Collective test concluded: %s\n#\n", c.Program)
	if s.Error != "" {
		fmt.Fprintf(t.w, "# error: %s\n", s.Error)
	} else {
		t.w.WriteByte('\n')
	}
	return t.w.Flush()
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
