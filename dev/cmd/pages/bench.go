package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

func benchTable() {
	if len(os.Args) < 2 || len(os.Args) > 3 {
		fmt.Fprintln(os.Stderr, "usage: bench FILE [NOTE]")
		os.Exit(2)
	}
	note := ""
	if len(os.Args) == 3 {
		note = os.Args[2]
	}
	f, err := os.Open(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	defer f.Close()
	if err := convert(f, os.Stdout, note); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// result is one benchmark with the values of all its runs, by unit.
type result struct {
	name  string
	units []string // in the order of appearance
	runs  map[string][]float64
}

// suite is a package's results in their order.
type suite struct {
	pkg     string
	results []*result
}

// report is what a run of `go test -bench` printed.
type report struct {
	machine []string // "goos: linux" and the like
	suites  []*suite
}

func convert(r io.Reader, w io.Writer, note string) error {
	rep, err := parse(r)
	if err != nil {
		return err
	}
	if len(rep.suites) == 0 {
		return fmt.Errorf("no benchmark in the input")
	}
	fmt.Fprintf(w, "# Benchmarks\n\n"+
		"Medians of `make bench-table`, one process, on %s. They compare rooms and sizes with each other; "+
		"for a change, run `make bench`\n"+
		"before and after it and read benchstat. `--cpuprofile FILE`, on every command, writes where "+
		"simccl itself spends its CPU time.\n", strings.Join(rep.machine, ", "))
	if note != "" {
		fmt.Fprintf(w, "\n%s\n", note)
	}
	for _, s := range rep.suites {
		fmt.Fprintf(w, "\n## %s\n\n"+
			"| benchmark | time | allocated | allocations | besides |\n|---|---:|---:|---:|---|\n", s.pkg)
		for _, res := range s.results {
			fmt.Fprintln(w, res.row())
		}
	}
	return nil
}

func parse(r io.Reader) (*report, error) {
	rep := &report{}
	var now *suite
	for lines := bufio.NewScanner(r); ; {
		if !lines.Scan() {
			return rep, lines.Err()
		}
		line := lines.Text()
		key, value, isHeader := strings.Cut(line, ": ")
		switch {
		case isHeader && (key == "goos" || key == "goarch" || key == "cpu"):
			if v := strings.TrimSpace(value); !slices.Contains(rep.machine, v) {
				rep.machine = append(rep.machine, v)
			}
		case isHeader && key == "pkg":
			now = &suite{pkg: strings.TrimPrefix(value, "github.com/simccl/simccl/")}
		case strings.HasPrefix(line, "Benchmark") && now != nil:
			if now.add(strings.Fields(line)) && !slices.Contains(rep.suites, now) {
				rep.suites = append(rep.suites, now)
			}
		case strings.HasPrefix(line, "FAIL") || strings.HasPrefix(line, "--- FAIL"):
			return nil, fmt.Errorf("the run failed: %s", line)
		}
	}
}

// add takes "BenchmarkX/8-2 100 12345 ns/op 3 B/op …" and reports whether it
// was a result.
func (s *suite) add(fields []string) bool {
	if len(fields) < 4 {
		return false
	}
	name := strings.TrimPrefix(fields[0], "Benchmark")
	if i := strings.LastIndexByte(name, '-'); i > 0 {
		if _, err := strconv.Atoi(name[i+1:]); err == nil {
			name = name[:i] // GOMAXPROCS
		}
	}
	i := slices.IndexFunc(s.results, func(r *result) bool { return r.name == name })
	if i < 0 {
		i = len(s.results)
		s.results = append(s.results, &result{name: name, runs: map[string][]float64{}})
	}
	r := s.results[i]
	for f := 2; f+1 < len(fields); f += 2 {
		v, err := strconv.ParseFloat(fields[f], 64)
		if err != nil {
			continue
		}
		unit := fields[f+1]
		if !slices.Contains(r.units, unit) {
			r.units = append(r.units, unit)
		}
		r.runs[unit] = append(r.runs[unit], v)
	}
	return true
}

func (r *result) row() string {
	var besides []string
	for _, u := range r.units {
		switch u {
		case "ns/op", "B/op", "allocs/op":
		default:
			besides = append(besides, fmt.Sprintf("%s %s", short(r.median(u)), u))
		}
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s |", r.name, duration(r.median("ns/op")),
		benchBytes(r.median("B/op")), short(r.median("allocs/op")), strings.Join(besides, ", "))
}

// median returns -1 where the unit was not measured.
func (r *result) median(unit string) float64 {
	v := slices.Clone(r.runs[unit])
	if len(v) == 0 {
		return -1
	}
	slices.Sort(v)
	return v[len(v)/2]
}

func duration(ns float64) string {
	switch {
	case ns < 0:
		return ""
	case ns < 1e3:
		return fmt.Sprintf("%.3g ns", ns)
	case ns < 1e6:
		return fmt.Sprintf("%.3g us", ns/1e3)
	case ns < 1e9:
		return fmt.Sprintf("%.3g ms", ns/1e6)
	}
	return fmt.Sprintf("%.3g s", ns/1e9)
}

func benchBytes(b float64) string {
	switch {
	case b < 0:
		return ""
	case b < 1<<10:
		return fmt.Sprintf("%.0f B", b)
	case b < 1<<20:
		return fmt.Sprintf("%.3g KiB", b/(1<<10))
	case b < 1<<30:
		return fmt.Sprintf("%.3g MiB", b/(1<<20))
	}
	return fmt.Sprintf("%.3g GiB", b/(1<<30))
}

// short prints a count or rate with three digits and a decimal prefix.
func short(v float64) string {
	switch {
	case v < 0:
		return ""
	case v < 1e4:
		return strconv.FormatFloat(v, 'g', 4, 64)
	case v < 1e6:
		return fmt.Sprintf("%.3gk", v/1e3)
	case v < 1e9:
		return fmt.Sprintf("%.3gM", v/1e6)
	}
	return fmt.Sprintf("%.3gG", v/1e9)
}
