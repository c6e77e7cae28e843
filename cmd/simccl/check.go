package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/simccl/simccl/internal/decision"
	"github.com/simccl/simccl/internal/newfile"
	"github.com/spf13/cobra"
)

func newCheck(a *app) *cobra.Command {
	update := false
	c := &cobra.Command{Use: "check DIR", Short: "Compare decisions with stored ones",
		Long: `check is for continuous integration. For every DIR/NAME.args, which holds the
options of an inspect command (file names relative to DIR, # begins a comment),
it compares the decision with DIR/NAME.json: numbers to 1e-5 of themselves, all
else exactly. Exit status 7 and the differences if there are any.

--update writes the documents instead.`,
		Example: `  echo "--topo dgx.xml --nodes 2" > ci/dgx-2.args
  simccl check ci --update && git add ci
  simccl check ci`,
		Args: exactly("DIR"),
		RunE: func(_ *cobra.Command, args []string) error {
			cases, err := filepath.Glob(filepath.Join(args[0], "*.args"))
			if _, err := os.Stat(args[0]); err != nil {
				return input(err)
			}
			if err != nil || len(cases) == 0 {
				return input(fmt.Errorf("%s: no NAME.args in it; write for example dgx.args with --topo dgx.xml --nodes 2", args[0]))
			}
			slices.Sort(cases)
			var errs []error
			verdicts := []verdict{}
			for _, c := range cases {
				v, err := a.checkCase(c, update)
				errs = append(errs, err)
				if verdicts = append(verdicts, v); !a.json {
					a.printVerdict(&v)
				}
			}
			if a.json {
				errs = append(errs, a.printJSON(verdicts))
			}
			return worst(errs)
		}}
	c.Flags().BoolVar(&update, "update", false, "write what is decided now")
	return c
}

// verdict is what became of one stored decision.
type verdict struct {
	Case        string   `json:"case"`
	Verdict     string   `json:"verdict"` // "ok", "FAIL", "wrote", "error"
	Count       int      `json:"count"`   // of differences
	Differences []string `json:"differences"`
}

// checkCase compares one stored decision, or stores it.
func (a *app) checkCase(args string, update bool) (verdict, error) {
	name := strings.TrimSuffix(args, ".args")
	v := verdict{Case: name, Verdict: "error", Differences: []string{}}
	got, err := a.decide(args)
	if err != nil {
		return v, fmt.Errorf("%s: %w", args, err)
	}
	if update {
		if err := newfile.Write(name+".json", got); err != nil {
			return v, err
		}
		v.Verdict = "wrote"
		return v, nil
	}
	want, err := readFile(a.context(), name+".json", maxResults)
	if err != nil {
		return v, input(fmt.Errorf("%w; make it with --update", err))
	}
	d, err := decision.Compare(want, got)
	if err != nil {
		return v, input(fmt.Errorf("%s.json: %w", name, err))
	}
	v.Count, v.Differences = d.Count, append(v.Differences, d.Lines...)
	if d.Count > 0 {
		v.Verdict = "FAIL"
		return v, failed("%s: decisions differ from %s.json", args, name)
	}
	v.Verdict = "ok"
	return v, nil
}

// printVerdict prints a verdict; the caller reports errors.
func (a *app) printVerdict(v *verdict) {
	p := a.paint(a.out)
	switch v.Verdict {
	case "wrote":
		fmt.Fprintf(a.out, "wrote %s.json\n", v.Case)
	case "ok":
		fmt.Fprintf(a.out, "%s   %s\n", p.Green("ok"), v.Case)
	case "FAIL":
		fmt.Fprintf(a.out, "%s %s: %d differences\n", p.Red("FAIL"), v.Case, v.Count)
		for _, l := range v.Differences {
			fmt.Fprintf(a.out, "     %s\n", l)
		}
		if more := v.Count - len(v.Differences); more > 0 {
			fmt.Fprintf(a.out, "     and %d more\n", more)
		}
	}
}

// decide runs inspect with the options of a file, in its directory.
func (a *app) decide(args string) ([]byte, error) {
	text, err := readFile(a.context(), args, maxSettings)
	if err != nil {
		return nil, input(err)
	}
	words, err := argsFile(string(text))
	if err != nil {
		return nil, err
	}
	sub := &app{out: io.Discard, err: a.err, ctx: a.ctx, last: a.last, environ: a.environ, env: a.env, noEnv: a.noEnv, dir: filepath.Dir(args)}
	var m machineFlags
	c := &cobra.Command{Use: "inspect", SilenceUsage: true, SilenceErrors: true, Args: exactly(),
		RunE: func(*cobra.Command, []string) error {
			x, err := m.load(sub)
			if err != nil {
				return err
			}
			text, err = sub.document(x)
			return err
		}}
	m.register(c)
	c.Flags().StringArrayVar(&sub.env, "env", a.env, "")
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage("%v", err) })
	c.SetArgs(words)
	c.SetOut(io.Discard)
	c.SetErr(io.Discard)
	if err := c.Execute(); err != nil {
		return nil, err
	}
	return text, nil
}

// argsFile reads the words of an .args file; # begins a comment. A file without
// any has an empty list, not nil: cobra would take that for the process's own.
func argsFile(text string) ([]string, error) {
	words := []string{}
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		more, err := splitWords(line)
		if err != nil {
			return nil, err
		}
		words = append(words, more...)
	}
	return words, nil
}
