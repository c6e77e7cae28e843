package nccltests

import (
	"fmt"
	"io"
	"strings"
)

// jsonVersion is JSON_FILE_VERSION of util.cu.
const jsonVersion = 3

// Report is a whole run for the JSON file.
type Report struct {
	Start, End string // YYYY-MM-DD hh:mm:ss
	Args, Env  []string
	Config     Config
	Devices    []Device
	Rows       []Row
	// Own is the value of the key "simccl" of each row, already JSON; shorter
	// than Rows or empty where there is nothing to add.
	Own     []string
	Summary Summary
	// Whole is the value of the key "simccl" of the file, JSON as well.
	Whole string
}

// WriteJSON writes the file of -J with nccl-tests' keys, order and formats:
// numbers as %lf, booleans as strings, no white space.
func WriteJSON(w io.Writer, r *Report) error {
	var b strings.Builder
	fmt.Fprintf(&b, `{"version":%d,"start_time":%s,"args":%s,"env":%s,"nccl_version":%d,`, jsonVersion,
		quote(r.Start), quoteAll(r.Args), quoteAll(r.Env), r.Config.NCCLLibrary)
	writeConfig(&b, &r.Config, r.Devices)
	b.WriteString(`,"results":[`)
	for i := range r.Rows {
		if i > 0 {
			b.WriteByte(',')
		}
		own := ""
		if i < len(r.Own) {
			own = r.Own[i]
		}
		writeRow(&b, &r.Config, &r.Rows[i], own)
	}
	s := &r.Summary
	fmt.Fprintf(&b, `],"out_of_bounds":{"count":%d,"okay":%s}`, s.OutOfBounds, boolean(s.OutOfBounds == 0))
	okay := `"unchecked"`
	if s.MinBW >= 0 {
		okay = boolean(!s.belowMin())
	}
	fmt.Fprintf(&b, `,"average_bus_bandwidth":{"bandwidth":%s,"okay":%s},"errors":`, double(s.AvgBusBW), okay)
	fmt.Fprintf(&b, `[%s],"end_time":%s`, quote(s.Error), quote(r.End))
	if r.Whole != "" {
		fmt.Fprintf(&b, `,"simccl":%s`, r.Whole)
	}
	b.WriteByte('}')
	_, err := io.WriteString(w, b.String())
	return err
}

func writeConfig(b *strings.Builder, c *Config, devices []Device) {
	fmt.Fprintf(b, `"config":{"nthreads":%d,"ngpus":%d,"minimum_bytes":%d,"maximum_bytes":%d`, c.Threads,
		c.GPUs, c.MinBytes, c.MaxBytes)
	if c.StepFactor > 1 {
		fmt.Fprintf(b, `,"step_factor":%d`, c.StepFactor)
	} else {
		fmt.Fprintf(b, `,"step_bytes":%d`, c.StepBytes)
	}
	fmt.Fprintf(b, `,"warmup_iters":%d,"iterations":%d,"aggregated_iterations":%d,"validation":%d,"graph":%d`,
		c.Warmup, c.Iters, c.AggIters, c.Check, c.Graph)
	fmt.Fprintf(b,
		`,"blocking_collectives":%s,"per_iter_timing":%s,"per_iter_skip":%d,"parallel_init":%s,"devices":[`,
		boolean(c.Blocking != 0), boolean(c.PerIter), c.PerIterSkip, boolean(c.ParallelInit))
	for i, d := range devices {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(b,
			`{"rank":%d,"group":%d,"pid":%d,"hostname":%s,"device":%d,"device_hex":%s,"device_info":%s}`,
			d.Rank, d.Group, d.PID, quote(d.Host), d.Device, quote(d.BusID), quote(d.Name))
	}
	b.WriteString(`]}`)
}

func writeRow(b *strings.Builder, c *Config, r *Row, own string) {
	fmt.Fprintf(b, `{"size":%d,"count":%d,"type":%s,"redop":%s,"root":"%6d"`, r.Size, r.Count, quote(r.Type),
		quote(r.RedOp), r.Root)
	time := "time"
	if c.CPUTime {
		time = "cpu_time"
	}
	for i, m := range []*Measure{&r.Out, &r.In} {
		wrong := "null"
		if m.Checked {
			wrong = double(float64(m.Wrong))
		}
		fmt.Fprintf(b, `,"%s":{"%s":%s,"alg_bw":%s,"bus_bw":%s,"nwrong":%s}`,
			[2]string{"out_of_place", "in_place"}[i],
			time, double(m.TimeUs), double(m.AlgBW), double(m.BusBW), wrong)
		if m.Iters != nil {
			fmt.Fprintf(b, `,"%s_per_iter":%s`, [2]string{"out_of_place", "in_place"}[i], m.Iters.json())
		}
	}
	if own != "" {
		fmt.Fprintf(b, `,"simccl":%s`, own)
	}
	fmt.Fprintf(b, `,"actual_iterations":%d,"experiment_name":""}`, c.Iters)
}

func boolean(v bool) string {
	if v {
		return `"true"`
	}
	return `"false"`
}

func double(v float64) string {
	if v != v {
		return `"nan"`
	}
	return fmt.Sprintf("%f", v)
}

func quoteAll(list []string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = quote(s)
	}
	return "[" + strings.Join(out, ",") + "]"
}

// quote prints a string as nccl-tests does: the slash is escaped too, and the
// string ends before the first character it has no escape for.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\' || c == '/':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\t':
			b.WriteString(`\t`)
		case c == '\n':
			b.WriteString(`\n`)
		case c <= 0x1f || c >= 0x7f:
			return b.String() + `"`
		default:
			b.WriteByte(c)
		}
	}
	return b.String() + `"`
}
