// Package options has the options of nccl-tests as values, and what of them a
// simulation takes. Errors are of package fail and name the members of Options in
// braces, for a caller to put its flags there. It reads no command line.
package options

import (
	"fmt"
	"strings"

	"github.com/simccl/simccl/internal/fail"
)

// NoPolicy leaves NCCL's CTA policy to its variable.
const NoPolicy = -1

// Options are nccl-tests' options, with its meanings.
type Options struct {
	Min, Max, Step string // of a sweep: sizes with K, M, G
	Factor         int64
	Sizes          string // exactly these, in place of a sweep
	// Of all_to_all_v: a file with elements by sender and receiver, in place of sizes, or
	// what the busiest receiver gets over the mean.
	CountsFile string
	Imbalance  float64

	Iters, Warmup, Agg, Cycles int
	Check                      int
	Op, DataType               string
	Root                       int
	Graph                      int
	Output                     string // file of nccl-tests' JSON
	Columns                    string // that are added to the table

	Threads, ParallelInit, Blocking, StreamNull, Timeout, CPUTime, Timestamps int
	Average, LocalRegister, CTAPolicy, Memory, Unalign, Device, DeviceCTAs    int
	PerIter, Skip                                                             int
}

// Counts refuses numbers of operations that no table can have.
func (o *Options) Counts() error {
	switch {
	case o.Iters < 1:
		return fail.Usage("{Iters} %d: at least one operation is timed", o.Iters)
	case o.Cycles < 1:
		return fail.Usage("{Cycles} %d: run_cycles must be at least 1; the number of nodes is --nodes",
			o.Cycles)
	case o.Agg < 1:
		return fail.Usage("{Agg} %d: a group has at least one operation", o.Agg)
	case o.Warmup < 0:
		return fail.Usage("{Warmup} %d: cannot be below 0", o.Warmup)
	}
	return nil
}

// Simulated refuses what would have to be simulated otherwise than it is: silence
// would be a wrong number. graph says that launches are those of a CUDA graph.
func (o *Options) Simulated(graph bool) error {
	switch {
	case o.CTAPolicy < NoPolicy || o.CTAPolicy > 2:
		return fail.Usage("{CTAPolicy} %d: 0 default, 1 efficiency, 2 zero CTAs", o.CTAPolicy)
	case o.Average < 0 || o.Average > 3:
		return fail.Usage("{Average} %d: 0 rank 0, 1 average, 2 minimum, 3 maximum", o.Average)
	case o.LocalRegister < 0 || o.LocalRegister > 2:
		return fail.Usage("{LocalRegister} %d: 0 none, 1 registered buffers, 2 symmetric windows",
			o.LocalRegister)
	case o.Blocking < 0 || o.Blocking > 3 || o.CPUTime < 0 || o.CPUTime > 1 || o.Unalign < 0:
		return fail.Usage("{Blocking} is 0 to 3, {CPUTime} 0 or 1, {Unalign} at least 0")
	case (o.Blocking != 0 && o.Blocking != 3 || o.CPUTime != 0) && graph: // of 3 nccl-tests goes on without
		return fail.Usage("{Blocking} %d {CPUTime} %d: a graph replay neither blocks nor is launched one "+
			"by one; use eager launches", o.Blocking, o.CPUTime)
	}
	return nil
}

// Settle turns off what nccl-tests turns off where other options do not go with it, and
// warns (common.cu:1417-1436).
func (o *Options) Settle(graph bool, warn func(format string, args ...any)) {
	off := func(v *int, bad bool, text string) {
		if *v != 0 && bad {
			*v = 0
			warn("%s", text)
		}
	}
	off(&o.PerIter, o.PerIter != 1, "-I: 0 or 1; single iterations are not timed")
	off(&o.PerIter, graph, "-I 1: a graph has no times of single iterations; they are not timed")
	off(&o.Skip, o.Skip < 0 || o.Skip >= o.Iters, "-K: from 0 to below -n; no iteration is left out")
	off(&o.Skip, o.PerIter == 0, "-K: leaves out iterations of -I 1; no iteration is left out")
	if o.DeviceCTAs < 1 || o.DeviceCTAs > 128 {
		o.DeviceCTAs = 16
		warn("-V: from 1 to 128 blocks; 16 are taken")
	}
}

// Split is what NCCL_TESTS_SPLIT says, or NCCL_TESTS_SPLIT_MASK, a hexadecimal number,
// before it; empty where neither is set.
func Split(getenv func(string) (string, bool)) string {
	if mask, ok := getenv("NCCL_TESTS_SPLIT_MASK"); ok && mask != "" {
		return "AND 0x" + strings.TrimPrefix(strings.ToLower(mask), "0x")
	}
	text, _ := getenv("NCCL_TESTS_SPLIT")
	return text
}

// NotSplit refuses variables of nccl-tests that would make another run of this one. They
// divide processes (common.cu:1496), so one process stays what it is.
func NotSplit(getenv func(string) (string, bool), processes int) error {
	if text := Split(getenv); text != "" && processes > 1 {
		return fail.NotYet("groups of ranks that run at the same time; unset it", "NCCL_TESTS_SPLIT=%s", text)
	}
	return nil
}

// MinBW reads NCCL_TESTS_MIN_BW as nccl-tests does, in GB/s of bus bandwidth; -1
// where it is unset.
func MinBW(getenv func(string) (string, bool)) (float64, error) {
	v := -1.0
	if text, ok := getenv("NCCL_TESTS_MIN_BW"); ok && text != "" {
		if _, err := fmt.Sscanf(text, "%g", &v); err != nil {
			return 0, fail.Usage("NCCL_TESTS_MIN_BW=%s: not a number of GB/s", text)
		}
	}
	return v, nil
}
