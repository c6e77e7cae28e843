// Package check compares what is decided now with decisions that a repository
// keeps. A Case is a pair of files: the options of an inspect command, and the
// document that it printed or a summary of it. A Run goes through cases, each with
// a Verdict that Text, JSON and Report render. How options become a decision is the
// caller's.
package check

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/internal/shellwords"
	"github.com/simccl/simccl/internal/terminal"
	"github.com/simccl/simccl/study/decision"
)

// Case is one stored decision, by the path of its files without their endings.
type Case string

// options returns the name of the file with options, .args; file names in it are relative to its directory.
func (c Case) options() string { return string(c) + ".args" }

// document returns the name of the stored decision's file.
func (c Case) document() string { return string(c) + ".json" }

// Cases lists the cases of a directory in the order of their names. Without any it
// is an error.
func Cases(dir string) ([]Case, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.args"))
	if _, err := os.Stat(dir); err != nil {
		return nil, fail.Input(err)
	}
	if err != nil || len(files) == 0 {
		return nil,
			fail.File("%s: no NAME.args in it; write for example dgx.args with --topo dgx.xml --nodes 2", dir)
	}
	slices.Sort(files)
	var out []Case
	for _, f := range files {
		out = append(out, Case(strings.TrimSuffix(f, ".args")))
	}
	return out, nil
}

// Outcome is a word about a case, as JSON has it.
type Outcome string

// Outcomes.
const (
	OK     Outcome = "ok"
	Failed Outcome = "FAIL"  // the decisions differ
	Wrote  Outcome = "wrote" // the document, with Update
	Broken Outcome = "error" // the case cannot be compared
)

// Difference is one place where a decision departs from the stored one.
type Difference = decision.Difference

// Verdict is the outcome of one case.
type Verdict struct {
	Case        Case         `json:"case"`
	Outcome     Outcome      `json:"verdict"`
	Count       int          `json:"count"`          // of differences
	Differences []Difference `json:"differences"`    // the first of them
	Hint        string       `json:"hint,omitempty"` // how to see more than that hashes differ
	Next        string       `json:"next,omitempty"` // what to do about differences
	cause       error        // why the outcome is not OK
	took        time.Duration
}

// Run checks cases, or updates them.
type Run struct {
	Update bool   // documents are written in place of being compared
	Whole  bool   // with Update: all that inspect --json prints, in place of choices and hashes
	JUnit  string // file of a JUnit report; "" for none
	// Print, if not nil, gets each verdict as soon as it is there.
	Print func(v *Verdict)
	// Decide returns the document for options; file names in them are relative to dir.
	Decide func(options []string, dir string) ([]byte, error)
	// ReadOptions and ReadDocument read a file, up to a size limit.
	ReadOptions, ReadDocument func(name string) ([]byte, error)
	Write                     func(name string, data []byte) error
	// Now is a clock for the report's times; nil: it has none.
	Now func() time.Time
}

// Dir checks all cases of a directory and writes the JUnit report. The verdicts are nil if the directory has
// no cases; the error joins the errors of all cases.
func (r *Run) Dir(dir string) ([]Verdict, error) {
	if r.Whole && !r.Update {
		return nil, fail.Usage("--whole says what --update writes; write --update --whole")
	}
	cases, err := Cases(dir)
	if err != nil {
		return nil, err
	}
	var errs []error
	verdicts := []Verdict{}
	for _, c := range cases {
		begun := r.now()
		v, err := r.Check(c)
		v.cause, v.took = err, r.now().Sub(begun)
		errs, verdicts = append(errs, err), append(verdicts, v)
		if r.Print != nil {
			r.Print(&v)
		}
	}
	if r.JUnit != "" {
		rep := Report(dir, verdicts)
		text, err := rep.JUnit()
		if err == nil {
			err = r.Write(r.JUnit, text)
		}
		errs = append(errs, err)
	}
	return verdicts, fail.Join(errs...)
}

func (r *Run) now() time.Time {
	if r.Now == nil {
		return time.Time{}
	}
	return r.Now()
}

// Report converts the verdicts for CI servers, one case per stored decision.
func Report(dir string, verdicts []Verdict) *CIReport {
	rep := &CIReport{Name: "simccl check " + dir}
	for i := range verdicts {
		v := &verdicts[i]
		c := CICase{Name: string(v.Case), File: v.Case.options(), Next: v.Next,
			Seconds: v.took.Seconds()}
		switch v.Outcome {
		case Failed:
			lines := v.lines()
			c.Failure, c.First = count(v.Count), lines[0]
			if more := v.Count - len(v.Differences); more > 0 {
				lines = append(lines, fmt.Sprintf("and %d more", more))
			}
			if v.Hint != "" {
				lines = append(lines, v.Hint)
			}
			c.Text = strings.Join(lines, "\n")
		case Broken:
			c.Error = v.cause.Error()
		}
		rep.Cases = append(rep.Cases, c)
	}
	return rep
}

// lines formats the listed differences. Sections of which only the hashes differ share one line.
func (v *Verdict) lines() (out []string) {
	var hashed []string
	for _, d := range v.Differences {
		if name, ok := strings.CutPrefix(d.What, "section "); ok && strings.HasPrefix(d.Was, "sha256:") {
			hashed = append(hashed, name)
			continue
		}
		out = append(out, d.String())
	}
	if hashed != nil {
		out = append(out, "differ by their hashes: "+strings.Join(hashed, ", "))
	}
	return out
}

func count(n int) string {
	if n == 1 {
		return "1 difference"
	}
	return fmt.Sprintf("%d differences", n)
}

// Check compares one stored decision, or stores it. The error is the reason for an outcome other than OK; its
// kind is fail.No if the decisions differ.
func (r *Run) Check(c Case) (Verdict, error) {
	v := Verdict{Case: c, Outcome: Broken, Differences: []Difference{}}
	got, err := r.decide(c)
	if err != nil {
		return v, fmt.Errorf("%s: %w", c.options(), err)
	}
	if r.Update {
		if !r.Whole {
			short, err := decision.Summarize(got)
			if err != nil {
				return v, err
			}
			if got, err = short.Encode(); err != nil {
				return v, err
			}
		}
		if err := r.Write(c.document(), got); err != nil {
			return v, err
		}
		v.Outcome = Wrote
		return v, nil
	}
	want, err := r.ReadDocument(c.document())
	if err != nil {
		return v, fail.Input(fmt.Errorf("%w; make it with --update", err))
	}
	d, err := decision.Compare(want, got)
	if err != nil {
		return v, fail.Input(fmt.Errorf("%s: %w", c.document(), err))
	}
	v.Count, v.Differences = d.Count, append(v.Differences, d.First...)
	if d.Count > 0 {
		v.Outcome = Failed
		dir := filepath.Dir(string(c))
		v.Next = fmt.Sprintf("on purpose: simccl check %s --update; else simccl topo diff says what "+
			"changed in a topology file, simccl diff what settings do", dir)
		if d.Hashed {
			v.Hint = "only hashes of these sections are stored: compare what simccl inspect --json with " +
				"the options of " + c.options() +
				" prints in both builds, or store all with check --update --whole in the earlier one"
		}
		return v, fail.Check("%s: decisions differ from %s", c.options(), c.document())
	}
	v.Outcome = OK
	return v, nil
}

// decide computes the decision for a case's options.
func (r *Run) decide(c Case) ([]byte, error) {
	text, err := r.ReadOptions(c.options())
	if err != nil {
		return nil, fail.Input(err)
	}
	words, err := shellwords.SplitFile(string(text))
	if err != nil {
		return nil, fail.Argument(err)
	}
	return r.Decide(words, filepath.Dir(c.options()))
}

// Text returns the verdict for people, in lines. A case that cannot be compared has
// none: its error says all.
func (v *Verdict) Text(p terminal.Palette) string {
	var b strings.Builder
	switch v.Outcome {
	case Wrote:
		fmt.Fprintf(&b, "wrote %s\n", v.Case.document())
	case OK:
		fmt.Fprintf(&b, "%s   %s\n", p.Green("ok"), v.Case)
	case Failed:
		fmt.Fprintf(&b, "%s %s: %s\n", p.Red("FAIL"), v.Case, count(v.Count))
		for _, line := range v.lines() {
			fmt.Fprintf(&b, "     %s\n", line)
		}
		if more := v.Count - len(v.Differences); more > 0 {
			fmt.Fprintf(&b, "     and %d more\n", more)
		}
		for _, more := range []string{v.Hint, v.Next} {
			if more != "" {
				fmt.Fprintf(&b, "     %s\n", more)
			}
		}
	}
	return b.String()
}
