// Package accuracy compares simulated times with measured ones: it reads the
// measured tables of testdata/measured, knows under which settings each was
// taken, and sums up errors. The tests beside it run the simulator and write
// docs/ACCURACY.md.
package accuracy

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/simccl/simccl/coll"
)

// Point is one measured time.
type Point struct {
	Set   *Set
	Func  coll.Func
	Ranks int
	Bytes int64   // as the table counts them
	Eager float64 // microseconds
	Graph float64 // microseconds, CUDA-graph replay
	Index int     // place among the sizes of its operation in the file
}

// Set is one measured file and the settings it was taken with.
type Set struct {
	Name        string
	File        string
	Machine     string // "procs" or "more": two machines of one kind
	Ranks       int
	Algo, Proto string // forced, NCCL's words; empty for the default
	MaxChannels int64  // NCCL_MAX_NCHANNELS, 0 unset
	MinChannels int64
	P2PChannels int64 // NCCL_MIN/MAX_P2P_NCHANNELS, 0 unset
	Type        coll.DataType
	SHM         bool // NCCL_P2P_DISABLE=1
	Points      []Point
}

var funcs = map[string]coll.Func{"ar": coll.AllReduce, "ag": coll.AllGather, "rs": coll.ReduceScatter,
	"bc": coll.Broadcast, "rd": coll.Reduce, "a2a": coll.AllToAll, "sr": coll.SendRecv}

var (
	protoPart = regexp.MustCompile(`_(LL128|LL|Simple)(_|$)`)
	chPart    = regexp.MustCompile(`^(?:pb_)?(tree|p2p)?ch(\d+)_`)
	rankPart  = regexp.MustCompile(`_([0-9])$`)
	typePart  = regexp.MustCompile(`^dt_(f16|bf16|f64)`)
)

// describe fills in the settings that a file's name stands for.
func (s *Set) describe() {
	n := s.Name
	s.Type = coll.Float32
	if m := rankPart.FindStringSubmatch(n); m != nil {
		s.Ranks, _ = strconv.Atoi(m[1])
	}
	if strings.HasPrefix(n, "n2_") {
		s.Ranks = 2
	}
	if m := protoPart.FindStringSubmatch(n + "_"); m != nil {
		s.Proto = m[1]
	}
	switch {
	case strings.Contains(n, "Ring"):
		s.Algo = "Ring"
	case strings.Contains(n, "Tree"), strings.HasPrefix(n, "treech"):
		s.Algo = "Tree"
	}
	if m := chPart.FindStringSubmatch(n); m != nil {
		k, _ := strconv.ParseInt(m[2], 10, 64)
		switch m[1] {
		case "p2p":
			s.P2PChannels = k
		case "tree":
			s.MaxChannels = k
		default:
			s.MaxChannels, s.Algo = k, "Ring"
		}
	}
	if m := typePart.FindStringSubmatch(n); m != nil {
		s.Type = map[string]coll.DataType{"f16": coll.Float16, "bf16": coll.BFloat16, "f64": coll.Float64}[m[1]]
	}
	s.SHM = strings.Contains(n, "shm")
}

// Read loads every table of a directory that holds procs and more.
func Read(dir string) ([]*Set, error) {
	var sets []*Set
	for _, machine := range []string{"procs", "more"} {
		files, err := filepath.Glob(filepath.Join(dir, machine, "*.txt"))
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			s := &Set{Name: strings.TrimPrefix(strings.TrimSuffix(filepath.Base(f), ".txt"), "pb_"), File: f, Machine: machine}
			s.describe()
			if err := s.read(f); err != nil {
				return nil, err
			}
			sets = append(sets, s)
		}
	}
	return sets, nil
}

func (s *Set) read(file string) error {
	r, err := os.Open(file)
	if err != nil {
		return err
	}
	defer r.Close()
	index := map[coll.Func]int{}
	sc := bufio.NewScanner(r)
	for line := 1; sc.Scan(); line++ {
		f := strings.Fields(sc.Text())
		if len(f) != 6 || f[0] != "PB" {
			continue
		}
		fn, ok := funcs[f[2]]
		if !ok {
			return fmt.Errorf("%s:%d: unknown operation %q", file, line, f[2])
		}
		p := Point{Set: s, Func: fn, Index: index[fn]}
		index[fn]++
		p.Ranks, err = strconv.Atoi(f[1])
		if err == nil {
			p.Bytes, err = strconv.ParseInt(f[3], 10, 64)
		}
		if err == nil {
			p.Eager, err = strconv.ParseFloat(f[4], 64)
		}
		if err == nil {
			p.Graph, err = strconv.ParseFloat(f[5], 64)
		}
		if err != nil {
			return fmt.Errorf("%s:%d: %w", file, line, err)
		}
		s.Ranks = p.Ranks
		s.Points = append(s.Points, p)
	}
	return sc.Err()
}

// Count is the element count that NCCL is called with at a point.
func (p *Point) Count() int64 {
	n := p.Bytes / int64(p.Set.Type.Size())
	switch p.Func {
	case coll.AllGather, coll.ReduceScatter, coll.AllToAll:
		n /= int64(p.Ranks)
	}
	return n
}
