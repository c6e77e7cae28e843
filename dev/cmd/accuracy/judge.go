package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/dev/accuracy"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/study/diagnose"
	"github.com/simccl/simccl/study/packetrun"
)

func judge() {
	if err := runJudge(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "judge:", err)
		os.Exit(1)
	}
}

// trial is a case: what is pasted, what is known beside it, and the answer that is right.
type trial struct {
	name, source string
	table        string // what halves are drawn by
	group        string // what misses are counted by
	verdict      diagnose.Verdict
	kinds        []string // any of them, among the suspects; empty: none is asked for
	none         bool     // no suspect is right
	asks         string   // what the answer has to ask for where it does not name the cause
	make         func() (diagnose.Request, error)
	slower       map[string]func(judgePoint) judgePoint // changes that make a table slower, by their names
}

// answer is a line of the log.
type answer struct {
	Name     string           `json:"name"`
	Group    string           `json:"group"`
	Right    diagnose.Verdict `json:"right,omitempty"`
	Kinds    []string         `json:"kinds,omitempty"`
	None     bool             `json:"none,omitempty"`
	Verdict  diagnose.Verdict `json:"verdict"`
	Suspects []string         `json:"suspects"`
	// of the suspects: one where the table shows no difference
	Ranks []int `json:"ranks,omitempty"`
	// Asked: among the first five things that are missing is what shows the cause.
	Asked   bool    `json:"asked,omitempty"`
	Skipped string  `json:"skipped,omitempty"`
	Seconds float64 `json:"cpuSeconds"`
}

// place is where among the suspects a right kind is listed, from 1, and its rank; 0: nowhere.
func (a *answer) place() (at, rank int) {
	at = 1 + slices.IndexFunc(a.Suspects, func(s string) bool { return slices.Contains(a.Kinds, s) })
	if rank = at; at > 0 && len(a.Ranks) >= at {
		rank = a.Ranks[at-1]
	}
	return at, rank
}

// list names the suspects, those of a rank joined.
func (a *answer) list() string {
	var b strings.Builder
	for i, s := range a.Suspects {
		switch {
		case i == 0:
		case i < len(a.Ranks) && a.Ranks[i] == a.Ranks[i-1]:
			b.WriteString("=")
		default:
			b.WriteString(" ")
		}
		b.WriteString(s)
	}
	return b.String()
}

func runJudge(ctx context.Context, args []string, w io.Writer) error {
	if len(args) < 1 {
		return fmt.Errorf("usage: judge tables|cuts|causes|faults|regimes [flags]")
	}
	f := flag.NewFlagSet(args[0], flag.ContinueOnError)
	shared := f.String("shared", "../shared", "directory of published tables and causes")
	half := f.String("half", "fit", "fit, held or all")
	only := f.String("only", "", "beginning of the names that are meant")
	every := f.Int("every", 1, "every so many-th case")
	draws := f.Int("draws", 10, "faults: machines of each kind")
	from := f.Int("from", 0, "faults: the first draw")
	whole := f.Bool("print", false, "print what diagnose answers, whole")
	log := f.String("log", "", "file of answers; cases in it are not run again")
	if err := f.Parse(args[1:]); err != nil {
		return err
	}
	if args[0] == "regimes" {
		return regimes(ctx, os.DirFS(*shared), w)
	}
	trials, err := trialsOf(args[0], os.DirFS(*shared), *from, *draws)
	if err != nil {
		return err
	}
	trials = slices.DeleteFunc(trials, func(t trial) bool {
		fit := accuracy.Fitted(t.source, cmp.Or(t.table, t.name))
		return !strings.HasPrefix(t.name, *only) ||
			*half != "all" && t.source != "" && fit != (*half == "fit")
	})
	answers, err := answered(*log)
	if err != nil {
		return err
	}
	var all []answer
	for i := 0; i < len(trials); i += *every {
		t := &trials[i]
		asked := []answer{answers[t.name]}
		for called := range t.slower { //lint:sorted answers are summed by group
			if a, ok := answers[t.name+called]; ok {
				asked = append(asked, a)
			}
		}
		if asked[0].Name == "" {
			asked = t.ask(ctx, func(text string) {
				if *whole {
					fmt.Fprintf(w, "%s\n%s\n", t.name, text)
				}
			})
			if err := record(*log, asked); err != nil {
				return err
			}
		}
		all = append(all, asked...)
	}
	sum(w, all)
	return nil
}

// ask has a case diagnosed: its answer, and the verdicts of the same table were it slower.
func (t *trial) ask(ctx context.Context, show func(string)) []answer {
	a := answer{Name: t.name, Group: t.group, Right: t.verdict, Kinds: t.kinds, None: t.none,
		Suspects: []string{}}
	req, err := t.make()
	if err != nil {
		a.Skipped = err.Error()
		return []answer{a}
	}
	req.NoSuspects, req.Options.Settings = t.slower != nil, config.Sources{NoEnv: true}
	start := packetrun.CPUSeconds()
	r, err := diagnose.New(ctx, req)
	if err != nil {
		a.Skipped = err.Error()
		return []answer{a}
	}
	a.Seconds = math.Round(100*(packetrun.CPUSeconds()-start)) / 100
	a.Verdict = r.Verdict
	show(r.Text())
	for _, s := range r.Suspects {
		a.Suspects, a.Ranks = append(a.Suspects, s.Kind), append(a.Ranks, s.Rank)
	}
	if at, _ := a.place(); at == 0 && t.asks != "" {
		a.Asked = slices.ContainsFunc(r.Missing[:min(5, len(r.Missing))], func(m string) bool {
			return strings.Contains(m, t.asks)
		})
	}
	out := []answer{a}
	for called, change := range t.slower { //lint:sorted answers are summed by group
		out = append(out, answer{Name: t.name + called, Group: "slower" + called, Right: diagnose.Slower,
			Verdict: r.Again(func(z *diagnose.Size) float64 {
				bw := float64(z.Bytes) / z.Measured * 1e-3
				return change(judgePoint{Bytes: z.Bytes, Us: z.Measured, AlgBW: bw}).Us
			}), Suspects: []string{}})
	}
	return out
}

// answered reads a log.
func answered(name string) (map[string]answer, error) {
	out := map[string]answer{}
	if name == "" {
		return out, nil
	}
	data, err := os.ReadFile(name)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); {
		var a answer
		if json.Unmarshal(s.Bytes(), &a) == nil { // a line that was cut short is asked again
			out[a.Name] = a
		}
	}
	return out, nil
}

func record(name string, answers []answer) error {
	if name == "" {
		return nil
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	e := json.NewEncoder(f)
	for i := range answers {
		err = cmp.Or(err, e.Encode(&answers[i]))
	}
	return cmp.Or(err, f.Close())
}

// tally counts a group.
type tally struct {
	cases, verdict, first, three, none, ofVerdict, ofKinds, ofNone int
	// As they are listed, without ranks, and how many kinds share the first rank and the first three.
	listed1, listed3, kinds1, kinds3 int
	// Causes that are not among three ranks, but what would show them is asked for.
	asked         int
	seconds, most float64 // of CPU: mean and largest
}

func (t *tally) add(a *answer) {
	t.cases++
	t.seconds, t.most = t.seconds+a.Seconds, max(t.most, a.Seconds)
	count := func(n *int, is bool) {
		if is {
			*n++
		}
	}
	count(&t.ofVerdict, a.Right != "")
	count(&t.verdict, a.Right != "" && a.Verdict == a.Right)
	count(&t.ofKinds, len(a.Kinds) > 0)
	at, rank := a.place()
	count(&t.first, rank == 1)
	count(&t.three, rank >= 1 && rank <= 3)
	count(&t.asked, a.Asked && (rank < 1 || rank > 3))
	count(&t.listed1, at == 1)
	count(&t.listed3, at >= 1 && at <= 3)
	for _, r := range a.Ranks {
		count(&t.kinds1, len(a.Kinds) > 0 && r == 1)
		count(&t.kinds3, len(a.Kinds) > 0 && r <= 3)
	}
	count(&t.ofNone, a.None)
	count(&t.none, a.None && len(a.Suspects) == 0)
}

// sum prints every miss, then the shares by group and of all.
func sum(w io.Writer, all []answer) {
	by := map[string]*tally{}
	total := new(tally)
	for i := range all {
		a := &all[i]
		if a.Skipped != "" {
			fmt.Fprintf(w, "left out %s: %s\n", a.Name, a.Skipped)
			continue
		}
		if by[a.Group] == nil {
			by[a.Group] = new(tally)
		}
		by[a.Group].add(a)
		total.add(a)
		_, p := a.place()
		if a.Right != "" && a.Verdict != a.Right || len(a.Kinds) > 0 && p != 1 ||
			a.None && len(a.Suspects) > 0 {
			fmt.Fprintf(w, "miss %s: %s, not %s; suspects %s, not %s (%d)\n", a.Name, a.Verdict, a.Right,
				a.list(), strings.Join(a.Kinds, "|"), p)
		}
	}
	for _, g := range slices.Sorted(maps.Keys(by)) {
		by[g].print(w, g)
	}
	if len(by) > 1 && total.ofNone+total.ofKinds > 0 {
		total.print(w, "all")
	}
}

func (t *tally) print(w io.Writer, name string) {
	fmt.Fprintf(w, "%-24s %4d cases", name, t.cases)
	share := func(what string, n, of int) {
		if of > 0 {
			fmt.Fprintf(w, "  %s %d of %d (%.0f %%)", what, n, of, 100*float64(n)/float64(of))
		}
	}
	share("verdict", t.verdict, t.ofVerdict)
	share("first", t.first, t.ofKinds)
	share("among three", t.three, t.ofKinds)
	if t.asked > 0 {
		share("else asked for", t.asked, t.ofKinds)
	}
	share("listed first", t.listed1, t.ofKinds)
	share("among three listed", t.listed3, t.ofKinds)
	if t.ofKinds > 0 {
		fmt.Fprintf(w, "  kinds in the first rank %.1f, in three %.1f", float64(t.kinds1)/float64(t.ofKinds),
			float64(t.kinds3)/float64(t.ofKinds))
	}
	share("no suspect", t.none, t.ofNone)
	fmt.Fprintf(w, "  CPU %.1f s, most %.1f s\n", t.seconds/float64(max(t.cases, 1)), t.most)
}

// machine is a Spec of equal nodes.
func machine(topo string, nodes, gpus int) scenario.Spec {
	return scenario.Spec{Machine: scenario.Machine{GPUs: gpus, Nodes: []scenario.Nodes{{Topo: topo,
		Count: nodes}}}}
}
