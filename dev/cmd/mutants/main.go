// Command mutants changes the code in one place at a time and runs the tests: a change that none of them
// notices is a rule that no test holds.
//
//	go run ./dev/cmd/mutants [-seed N] [-n N] [-in ROOMS] [-cited] [-each N] [-met] [-near] [-given TABLE]
//	    [-seconds S] [-hardware] FILE
//
// Places are drawn by the seed from the code of the rooms, each kind of change equally often: an integer by
// one more or less, a condition negated, a comparison shifted, "and" for "or", a sign, a statement taken
// out. A mutant has to die by the tests of its package, the short ones first, or by the short tests of those
// that import it, the nearest first, as long as these take S seconds of a processor in all. -by and -run
// bound both, to see what the cases of a rule decide alone; -near asks no importers, which a later call does
// of what is undecided. FILE gets a line for each mutant; a later call goes on where it ends. Beside it,
// FILE.met.jsonl keeps what tests meet (met.go).
//
// Code of app, cmd, dev, examples and tools is drawn only where -in names it.
//
// All that are drawn are compiled into the tests once, each behind a switch (switch.go), and tests run first
// without any, to see which they meet: others need not run. What cannot be switched, as a constant that an
// array's length needs, is compiled by itself. The source stays as it is: the compiler reads another file in
// its place (go build -overlay).
//
// With -cited, places are those of rules that cite NCCL (enqueue.cc:258 in the comment of the function, the
// value or the line), N of each. The conversations of their room run first (testdata/rules), and what is
// printed are the places that no test decides, and how many rules are decided by a story, by another test of
// the package, by one of importers, or by none. With -met what a story meets counts as decided: the mutants
// that run are those of places that none meets.
//
// With -given, what is changed is in a table (given.go); review.txt is one, of a review of the house.
//
// equivalent.txt lists mutants that are equal to the code, with the reason; they are not drawn. Nor are those
// of hardware.txt's files, which no test without GPUs or RDMA devices reaches; it says which command does.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/simccl/simccl/dev/golist"
	"github.com/simccl/simccl/dev/reductions"
)

// decided are the rooms whose code decides as NCCL does, which -cited looks at.
const decided = "rules,topo,search,connect,tuning,plan/launch"

func main() {
	var o options
	flag.Uint64Var(&o.seed, "seed", 1, "of the places")
	flag.IntVar(&o.n, "n", 100, "mutants in all, those of FILE included; with -cited, in this call")
	in := flag.String("in", "", "rooms or packages, with commas ("+decided+
		" with -cited, else all but app and dev)")
	flag.BoolVar(&o.cited, "cited", false, "mutants of rules that cite NCCL")
	flag.StringVar(&o.given, "given", "", "table of mutants")
	flag.IntVar(&o.each, "each", 2, "with -cited, of each rule")
	flag.Float64Var(&o.seconds, "seconds", 120,
		"of a processor that the tests of importers may take for one mutant")
	flag.StringVar(&o.tests, "run", "", "tests to run alone, as of go test, short and whole")
	by := flag.String("by", "", "packages to run tests of alone, with commas")
	flag.BoolVar(&o.met, "met", false,
		"with -cited, what a story meets (with -run, a test) counts as dead, and is not run")
	flag.BoolVar(&o.near, "near", false, "leave what the tests of its package let live undecided")
	flag.BoolVar(&o.list, "list", false, "print what would be drawn, and test nothing")
	flag.BoolVar(&o.hardware, "hardware", false,
		"draw from the files of hardware.txt, too, where the tests find what they need")
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if o.in = strings.Split(*in, ","); *in == "" && o.cited {
		o.in = strings.Split(decided, ",")
	} else if *in == "" {
		o.in = nil
	}
	if *by != "" {
		o.by = strings.Split(*by, ",")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	survivors, err := o.run(ctx, flag.Arg(0))
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	if survivors > 0 {
		os.Exit(1)
	}
}

type options struct {
	seed        uint64
	given       string
	n, each     int
	in, by      []string
	tests       string
	seconds     float64
	cited, list bool
	near        bool // no importers
	known       *meetings
	met         bool // only what can be switched
	hardware    bool // what only hardware reaches, too
}

// A row of the file is a mutant and what became of it.
type row struct {
	Place
	Verdict string // one of the verdicts
	By      string `json:",omitempty"` // the test or package that notices
	Held    string `json:",omitempty"` // and what that is
	Seconds float64
}

const (
	dies      = "dies"
	survives  = "survives"
	undecided = "importers not asked" // its package's tests survived: a later call goes on there
	unusable  = "does not compile"    // neither counts
	forgotten = "no tests"            // a survivor, too
)

func (o *options) run(ctx context.Context, file string) (survivors int, err error) {
	m, err := golist.Load(".")
	if err != nil {
		return 0, err
	}
	places, err := o.placesOf(m)
	if err != nil {
		return 0, err
	}
	f, err := reductions.Resume[row](file)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	met, err := reductions.Resume[meeting](strings.TrimSuffix(file, filepath.Ext(file)) + ".met.jsonl")
	if err != nil {
		return 0, err
	}
	defer met.Close()
	o.known = &meetings{met}
	done, pending := map[string]bool{}, map[string]*row{}
	counted := 0
	for _, r := range latest(f.All) {
		done[r.Key()] = r.Verdict != undecided
		if r.Verdict == undecided {
			pending[r.Key()] = &r
		} else if r.Verdict != unusable {
			counted++
		}
	}
	if o.cited {
		counted = 0
	}
	for counted < o.n && ctx.Err() == nil {
		var batch, drawn []*Place // with those that are done: what is compiled is the same for each call
		for p := range o.draws(places) {
			if counted+len(batch) >= o.n {
				break
			}
			if drawn = append(drawn, p); !done[p.Key()] {
				done[p.Key()] = true
				batch = append(batch, p)
			}
		}
		if len(batch) == 0 {
			break
		}
		if o.list {
			for _, p := range batch {
				fmt.Println(p)
			}
			break
		}
		n, err := o.testAll(ctx, m, drawn, batch, pending, f)
		if err != nil {
			return 0, err
		}
		if counted += n; o.near {
			break
		}
	}
	return show(os.Stdout, latest(f.All), o), f.Close()
}

// placesOf are the places that draws are of: without equivalents, or those of the table that is given.
func (o *options) placesOf(m *golist.Module) ([]*Place, error) {
	places, err := placesIn(m, o.in)
	if err != nil {
		return nil, err
	}
	same, err := reasons("equivalent.txt", equivalentTable)
	if err != nil {
		return nil, err
	}
	if bad := same.unknown(places, o.in); len(bad) > 0 {
		return nil, fmt.Errorf("equivalent.txt: no such place: %s", bad[0])
	}
	if o.given != "" {
		return givenPlaces(o.given)
	}
	if places = same.without(places); o.hardware {
		return places, nil
	}
	only, err := reasons("hardware.txt", hardwareTable)
	if err != nil {
		return nil, err
	}
	return reachable(os.Stderr, places, only)
}

// latest are rows without those that a later one of the same mutant replaces.
func latest(all []row) []row {
	at := map[string]int{}
	var rows []row
	for i := range all {
		if j, ok := at[all[i].Key()]; ok {
			rows[j] = all[i]
			continue
		}
		at[all[i].Key()] = len(rows)
		rows = append(rows, all[i])
	}
	return rows
}

// testAll tests places and says how many compile: first by the tests of their packages, which are the
// cheapest and notice most, then what is left by those of importers. Pending are those that an earlier call
// left there; drawn are places with those that earlier calls decided.
func (o *options) testAll(ctx context.Context, m *golist.Module, drawn, places []*Place,
	pending map[string]*row, f *reductions.Resumed[row]) (counted int, err error) {
	var s *suite
	if o.given == "" {
		if s, err = switchedSuite(m, o, drawn); err != nil {
			return 0, err
		}
		defer s.close()
	}
	slices.SortStableFunc(places, func(a, b *Place) int { // what is compiled by itself comes last
		return cmp.Compare(min(b.id, 1), min(a.id, 1))
	})
	var later []*row // what no test of its own package notices
	add := func(r *row) error {
		if r.Verdict != unusable {
			counted++
		}
		fmt.Fprintf(os.Stderr, "%-16s %4.1f s  %v  %s\n", r.Verdict, r.Seconds, &r.Place, r.By)
		return f.Add(r)
	}
	for _, p := range places {
		var r *row
		done := true
		if before := pending[p.Key()]; before != nil && p.id > 0 {
			before.Place, before.Verdict = *p, survives
			later = append(later, before)
			continue
		}
		if p.id > 0 {
			r, done, err = s.near(ctx, p)
		} else if o.met {
			r = &row{Place: *p, Verdict: unusable}
		} else {
			r, err = alone(ctx, m, o, p)
		}
		if err != nil {
			break
		}
		if done {
			err = add(r)
		} else {
			later = append(later, r)
			left := *r
			left.Verdict = undecided
			err = f.Add(&left)
		}
		if err != nil {
			break
		}
	}
	for _, r := range later {
		if err == nil && !o.near {
			if err = s.far(ctx, r); err == nil {
				err = add(r)
			}
		}
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		return counted, err
	}
	return counted, nil
}
