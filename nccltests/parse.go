package nccltests

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/simccl/simccl/internal/termtext"
)

// Parsed is a table read back.
type Parsed struct {
	Preface []string // comment lines before the version line, without "# "
	Config  Config
	Devices []Device
	Rows    []Row
	Summary Summary
	// MoreComments and a version other than Version are kept for callers that
	// care; numbers are as printed, so rounded.
	MoreComments []string
}

// ParseError names the line that is not of nccl-tests.
type ParseError struct {
	Line    int
	Text    string
	Problem string
}

// Error prints line, problem and text.
func (e *ParseError) Error() string {
	if e.Text == "" {
		return fmt.Sprintf("line %d: %s", e.Line, termtext.Short(e.Problem, 400))
	}
	return fmt.Sprintf("line %d: %s: %s", e.Line, termtext.Short(e.Problem, 400), termtext.Quote(e.Text, 0))
}

var deviceLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^#  Rank +(-?\d+) Group +(-?\d+) Pid +(-?\d+) on +(\S+) device +(-?\d+) \[([^\]]*)\] (.*)$`)
})

// Parse reads a table. It accepts further comment lines and columns.
func Parse(r io.Reader) (*Parsed, error) {
	p := &Parsed{Summary: Summary{MinBW: -1}}
	scan := bufio.NewScanner(r)
	line := 0
	for scan.Scan() {
		line++
		text := scan.Text()
		if problem := p.line(text); problem != "" {
			return nil, &ParseError{line, text, problem}
		}
	}
	if err := scan.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, &ParseError{line + 1, "", fmt.Sprintf("a line of more than %d bytes", bufio.MaxScanTokenSize)}
	} else if err != nil {
		return nil, err
	}
	if p.Config.Program == "" && len(p.Rows) == 0 {
		return nil, &ParseError{line, "", "no nccl-tests table found"}
	}
	return p, nil
}

func (p *Parsed) line(text string) string {
	c := &p.Config
	if !strings.HasPrefix(text, "#") {
		if strings.TrimSpace(text) == "" {
			return ""
		}
		return p.row(text)
	}
	if m := deviceLine().FindStringSubmatch(text); m != nil {
		d := Device{Host: m[4], BusID: m[6], Name: m[7]}
		for i, to := range []*int{&d.Rank, &d.Group, &d.PID, nil, &d.Device} {
			if to != nil {
				*to, _ = strconv.Atoi(m[i+1]) // digits by the pattern; huge ones saturate
			}
		}
		p.Devices = append(p.Devices, d)
		return ""
	}
	var s, kind string
	var step int64
	switch {
	case scanf(text, "# nccl-tests version %s nccl-headers=%d nccl-library=%d", &c.TestsVersion, &c.NCCLHeaders, &c.NCCLLibrary):
	case scanf(text, "# Collective test starting: %s", &c.Program):
	case scanf(text, "# nThread %d nGpus %d minBytes %d maxBytes %d step: %d%s warmup iters: %d iters: %d agg iters: %d validation: %d graph: %d unalign: %d",
		&c.Threads, &c.GPUs, &c.MinBytes, &c.MaxBytes, &step, &kind, &c.Warmup, &c.Iters, &c.AggIters, &c.Check, &c.Graph, &c.Unalign):
		if kind == "(factor)" {
			c.StepFactor = step
		} else {
			c.StepBytes = step
		}
	case strings.HasPrefix(text, "# Per-Iteration Report:"):
		c.PerIter = true
		if _, skip, ok := strings.Cut(text, "skips first "); ok {
			scanf(skip, "%d", &c.PerIterSkip)
		}
	case scanf(text, "# Out of bounds values : %d %s", &p.Summary.OutOfBounds, &s):
	case scanf(text, "# Avg bus bandwidth    : %g", &p.Summary.AvgBusBW):
	case c.TestsVersion == "":
		p.Preface = append(p.Preface, strings.TrimPrefix(strings.TrimPrefix(text, "#"), " "))
	default:
		p.MoreComments = append(p.MoreComments, text)
	}
	return ""
}

func scanf(text, format string, args ...any) bool {
	n, _ := fmt.Sscanf(text, format, args...)
	return n == len(args)
}

func (p *Parsed) row(text string) string {
	f := strings.Fields(text)
	half := 4
	if p.Config.PerIter {
		half = 8 // the spread of iterations is not kept: it has no times
	}
	if len(f) < 5+2*half {
		return fmt.Sprintf("a row has %d columns", 5+2*half)
	}
	r := Row{Type: f[2], RedOp: f[3], Extra: f[5+2*half:]}
	var err error
	num := func(s string) float64 {
		v, e := strconv.ParseFloat(s, 64)
		if e != nil {
			err = e
		}
		return v
	}
	whole := func(s string) int64 {
		v, e := strconv.ParseInt(s, 10, 64)
		if e != nil {
			err = e
		}
		return v
	}
	r.Size, r.Count, r.Root = whole(f[0]), whole(f[1]), int(whole(f[4]))
	for i, m := range []*Measure{&r.Out, &r.In} {
		at := f[5+half*i:]
		m.TimeUs, m.AlgBW, m.BusBW = num(at[0]), num(at[1]), num(at[2])
		if m.Checked = at[3] != "N/A"; m.Checked {
			m.Wrong = int64(num(at[3]))
		}
	}
	if err != nil {
		return err.Error()
	}
	p.Rows = append(p.Rows, r)
	return ""
}
