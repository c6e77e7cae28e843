package nccltests

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/internal/termtext"
)

// document is the file of -J as far as ParseJSON reads it.
type document struct {
	Version int      `json:"version"`
	Start   string   `json:"start_time"`
	End     string   `json:"end_time"`
	Args    []string `json:"args"`
	Env     []string `json:"env"`
	Library int      `json:"nccl_version"`
	Config  struct {
		Threads  int    `json:"nthreads"`
		GPUs     int    `json:"ngpus"`
		Min      int64  `json:"minimum_bytes"`
		Max      int64  `json:"maximum_bytes"`
		Factor   int64  `json:"step_factor"`
		Step     int64  `json:"step_bytes"`
		Warmup   int    `json:"warmup_iters"`
		Iters    int    `json:"iterations"`
		Agg      int    `json:"aggregated_iterations"`
		Check    int    `json:"validation"`
		Graph    int    `json:"graph"`
		Blocking string `json:"blocking_collectives"`
		PerIter  string `json:"per_iter_timing"`
		Skip     int    `json:"per_iter_skip"`
		Devices  []struct {
			Rank   int    `json:"rank"`
			Group  int    `json:"group"`
			PID    int    `json:"pid"`
			Host   string `json:"hostname"`
			Device int    `json:"device"`
			BusID  string `json:"device_hex"`
			Name   string `json:"device_info"`
		} `json:"devices"`
	} `json:"config"`
	Results []struct {
		Size  int64           `json:"size"`
		Count int64           `json:"count"`
		Type  string          `json:"type"`
		RedOp string          `json:"redop"`
		Root  string          `json:"root"`
		Out   timed           `json:"out_of_place"`
		In    timed           `json:"in_place"`
		Own   json.RawMessage `json:"simccl"`
	} `json:"results"`
}

type timed struct {
	Time  number  `json:"time"`
	Alg   number  `json:"alg_bw"`
	Bus   number  `json:"bus_bw"`
	Wrong *number `json:"nwrong"`
}

// number also reads the strings used where JSON has no number ("nan").
type number float64

// UnmarshalJSON implements json.Unmarshaler.
func (n *number) UnmarshalJSON(b []byte) error {
	v, ok := value(strings.Trim(string(b), `"`))
	if !ok {
		return &ParseError{Problem: "a number is expected, not " + termtext.Quote(string(b), 0)}
	}
	*n = number(v)
	return nil
}

func (t *timed) measure() Measure {
	m := Measure{TimeUs: float64(t.Time), AlgBW: float64(t.Alg), BusBW: float64(t.Bus),
		Checked: t.Wrong != nil}
	if m.Checked {
		m.Wrong = int64(*t.Wrong)
	}
	return m
}

// ParseJSON reads the file of -J, of nccl-tests or as WriteJSON writes it. It
// returns nil for JSON of another kind, and the place of what is no JSON as a
// *ParseError; file names the text in it.
func ParseJSON(text []byte, file string) (*Report, error) {
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, jsonFault(text, file, err)
	}
	if d.Version == 0 || d.Results == nil {
		return nil, nil
	}
	c := &d.Config
	r := &Report{Start: d.Start, End: d.End, Args: d.Args, Env: d.Env}
	r.Config = Config{NCCLLibrary: d.Library, Threads: c.Threads, GPUs: c.GPUs, MinBytes: c.Min,
		MaxBytes: c.Max, StepFactor: c.Factor,
		StepBytes: c.Step, Warmup: c.Warmup, Iters: c.Iters, AggIters: c.Agg, Check: c.Check, Graph: c.Graph,
		PerIter: c.PerIter == "true", PerIterSkip: c.Skip}
	if len(d.Args) > 0 {
		r.Config.Program = program(d.Args)
	}
	for _, v := range c.Devices {
		r.Devices = append(r.Devices, Device{v.Rank, v.Group, v.PID, v.Host, v.Device, v.BusID, v.Name})
	}
	for i := range d.Results {
		v := &d.Results[i]
		root, err := strconv.Atoi(strings.TrimSpace(v.Root))
		if err != nil {
			return nil, &ParseError{File: file, Problem: fmt.Sprintf("results[%d].root: %s is no rank", i,
				termtext.Quote(v.Root, 0))}
		}
		r.Rows = append(r.Rows, Row{Size: v.Size, Count: v.Count, Type: v.Type, RedOp: v.RedOp, Root: root,
			Out: v.Out.measure(), In: v.In.measure()})
		r.Own = append(r.Own, string(v.Own))
	}
	return r, nil
}

// jsonFault is an error of the decoder with its place, in words of a file.
func jsonFault(text []byte, file string, err error) error {
	out := &ParseError{File: file, Problem: "the file is no JSON of nccl-tests"}
	at := int64(len(text))
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	var own *ParseError
	switch {
	case errors.As(err, &own):
		out.Problem = own.Problem
		return out
	case errors.As(err, &syntax) && syntax.Offset >= at:
		out.Problem = "the JSON ends too early; was the run cut short?"
	case errors.As(err, &syntax):
		at, out.Problem = syntax.Offset-1, "this is no JSON: a value, a comma or a bracket is expected"
	case errors.As(err, &kind):
		at, out.Problem = kind.Offset, fmt.Sprintf("%s: %s is not what nccl-tests writes there",
			termtext.Short(kind.Field, 100), termtext.Short(kind.Value, 100))
	}
	before := text[:min(max(at, 0), int64(len(text)))]
	out.Line, out.Column = 1+bytes.Count(before, []byte("\n")), len(before)-bytes.LastIndexByte(before, '\n')
	return out
}

// programs are nccl-tests' binaries without "_perf".
var programs = []string{"all_gather", "all_reduce", "alltoall", "broadcast", "gather", "hypercube", "reduce",
	"reduce_scatter", "scatter", "sendrecv"}

// program is the operation in a command line: nccl-tests' first word, or of
// ours the first after the command that names one, because options may precede it.
func program(args []string) string {
	name := path.Base(args[0])
	if at := slices.IndexFunc(args, func(a string) bool { return a == "bench" || a == "run" }); at >= 0 {
		for _, a := range args[at+1:] {
			if i := slices.IndexFunc(programs, func(p string) bool { return Bare(p) == Bare(a) }); i >= 0 {
				name = programs[i]
				break
			}
		}
	}
	if !strings.HasSuffix(name, "_perf") {
		name += "_perf"
	}
	return name
}

// Bare is an operation's name as all its spellings have it: allreduce of
// All-Reduce and all_reduce_perf.
func Bare(name string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.TrimSuffix(strings.ToLower(name), "_perf"))
}
