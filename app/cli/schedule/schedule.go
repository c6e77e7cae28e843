// Package schedule implements the command schedule, which shows, proves and converts schedules of other
// tools. It only knows options; reading is in plan/msccl and plan/mscclpp, proving in plan/schedule.
package schedule

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/plan/msccl"
	"github.com/simccl/simccl/plan/mscclpp"
	"github.com/simccl/simccl/plan/schedule"
	"github.com/simccl/simccl/workload/inputs"
	"github.com/spf13/cobra"
)

// most is the largest accepted size of a file, compressed and unpacked, in bytes.
const most = 64 << 20

// Command returns `simccl schedule`.
func Command(a *cli.App) *cobra.Command {
	return cli.Long(cli.Group("schedule", "Read schedules of others (MSCCL XML, MSCCL++ JSON), prove and "+
		"convert them", show(a), prove(a), convert(a)),
		`A schedule says which rank sends which chunk when, for one collective. show prints it,
prove runs it on symbols and names the step that makes a result wrong, convert
writes it as MSCCL XML; run --schedule simulates it in place of NCCL's own.`)
}

// Load reads a schedule, which may be compressed.
func Load(a *cli.App, name string) (*schedule.Schedule, error) {
	text, err := a.ReadAs(name, most, inputs.MSCCL, inputs.MSCCLPlus)
	if err != nil {
		return nil, err
	}
	read := msccl.Read
	if head := bytes.TrimLeft(text, " \t\r\n"); bytes.HasPrefix(head, []byte("{")) {
		read = mscclpp.Read
	}
	s, err := read(text, name)
	return s, fail.Input(err)
}

// Prove reads a schedule and proves it in place and out of place, as far as it declares them; an unprovable
// one is an error.
func Prove(a *cli.App, name string) (*schedule.Schedule, error) {
	s, err := Load(a, name)
	if err != nil {
		return nil, err
	}
	if err := proveAll(s); err != nil {
		return nil, fail.Check("%v", err)
	}
	return s, nil
}

// facts is the JSON output about a schedule.
type facts struct {
	Name       string `json:"name"`
	Format     string `json:"format"`
	Func       string `json:"func"`
	Proto      string `json:"proto"`
	Ranks      int    `json:"ranks"`
	Channels   int    `json:"channels"`
	Chunks     int    `json:"chunks"`
	Blocks     int    `json:"blocks"` // of the GPU with the most
	Steps      int    `json:"steps"`  // of all GPUs
	InPlace    bool   `json:"inPlace"`
	OutOfPlace bool   `json:"outOfPlace"`
	MinBytes   int64  `json:"minBytes"`
	MaxBytes   *int64 `json:"maxBytes"` // null: no bound
}

func factsOf(s *schedule.Schedule) facts {
	f := facts{Name: s.Name, Format: s.Format, Func: s.Func.TestName(), Proto: s.Proto.String(),
		Ranks: len(s.GPUs), Channels: s.Channels, Chunks: s.Chunks,
		InPlace: s.InPlace, OutOfPlace: s.OutOfPlace, MinBytes: s.MinBytes}
	if s.MaxBytes > 0 {
		f.MaxBytes = &s.MaxBytes
	}
	for _, g := range s.GPUs {
		f.Blocks = max(f.Blocks, len(g.Blocks))
		for _, b := range g.Blocks {
			f.Steps += b.Steps
		}
	}
	return f
}

func (f *facts) text() string {
	upTo := "on"
	if f.MaxBytes != nil {
		upTo = fmt.Sprintf("to %d", *f.MaxBytes)
	}
	word := "steps"
	if f.Format == "mscclpp" {
		word = "operations"
	}
	return fmt.Sprintf("%s: %s of %d ranks, %s, %d channels, %d chunks\n"+
		"%d thread blocks a rank at most, %d %s; in place %t, out of place %t; from %d bytes %s\n",
		f.Name, f.Func, f.Ranks, f.Proto, f.Channels, f.Chunks, f.Blocks, f.Steps, word, f.InPlace,
		f.OutOfPlace, f.MinBytes, upTo)
}

// ConvertOptions are the flags and arguments of convert.
type ConvertOptions struct{ File string }

func convert(a *cli.App) *cobra.Command {
	return &cobra.Command{Use: "convert FILE", Short: "Write a schedule as MSCCL XML",
		Long: `convert proves a schedule and writes it as MSCCL XML, which says what it does in
steps of two-sided connections. What that form cannot say is refused and named.`,
		Example: "  simccl schedule convert testdata/schedules/packets2.json",
		Args:    cli.Exactly("FILE"),
		RunE:    cli.RunOf(a, func(args []string) cli.Runner { return &ConvertOptions{args[0]} })}
}

// Run proves the schedule and prints it.
func (o *ConvertOptions) Run(_ context.Context, a *cli.App) error {
	s, err := Prove(a, o.File)
	if err != nil {
		return err
	}
	to, err := msccl.TwoSided(s)
	if err != nil {
		return fail.Argument(err)
	}
	if a.JSON {
		return a.PrintJSON(struct {
			facts
			XML string `json:"xml"`
		}{factsOf(to.Schedule), string(to.XML())})
	}
	return a.PrintText(string(to.XML()))
}

// ShowOptions are the flags and arguments of show.
type ShowOptions struct{ File string }

func show(a *cli.App) *cobra.Command {
	return &cobra.Command{Use: "show FILE", Short: "Say what a schedule does",
		Example: "  simccl schedule show testdata/schedules/hier2x2.xml",
		Args:    cli.Exactly("FILE"),
		RunE:    cli.RunOf(a, func(args []string) cli.Runner { return &ShowOptions{args[0]} })}
}

// Run prints the schedule.
func (o *ShowOptions) Run(_ context.Context, a *cli.App) error {
	s, err := Load(a, o.File)
	if err != nil {
		return err
	}
	f := factsOf(s)
	if a.JSON {
		return a.PrintJSON(f)
	}
	return a.PrintText(f.text())
}

// element is the first wrong element of a schedule.
type element struct {
	GPU     int    `json:"gpu"`   // -1: the whole schedule
	Block   int    `json:"block"` // -1: the whole GPU
	Step    int    `json:"step"`  // -1: the whole thread block
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Problem string `json:"problem"`
}

// answer is the JSON output of check.
type answer struct {
	facts
	OK    bool     `json:"ok"`
	Wrong *element `json:"wrong"`
}

// CheckOptions are the flags and arguments of check.
type CheckOptions struct{ File string }

func prove(a *cli.App) *cobra.Command {
	return &cobra.Command{Use: "check FILE",
		Short: "Prove a schedule, or name the first element that is wrong",
		Long: `check proves that a schedule ends, that its sends meet receives of equal size, that
every two steps that touch a chunk are ordered where one of them writes it, and
that each output chunk holds what the operation promises. Else it names the first
element that is wrong, and ends with exit status 7.`,
		Example: "  simccl schedule check testdata/schedules/allpairs4.xml --json",
		Args:    cli.Exactly("FILE"),
		RunE:    cli.RunOf(a, func(args []string) cli.Runner { return &CheckOptions{args[0]} })}
}

// Run proves the schedule, and fails with the first element that is wrong.
func (o *CheckOptions) Run(_ context.Context, a *cli.App) error {
	s, err := Load(a, o.File)
	out := answer{}
	if err == nil {
		out.facts = factsOf(s)
		err = proveAll(s)
	}
	var e *schedule.Error
	if err != nil && !errors.As(err, &e) {
		return err
	}
	if e != nil {
		out.Wrong = &element{e.GPU, e.Block, e.Step, e.Pos.Line, e.Pos.Col, e.Problem}
	}
	if out.OK = e == nil; a.JSON {
		if err := a.PrintJSON(out); err != nil || out.OK {
			return err
		}
		return fail.Printed("%v", err)
	}
	if !out.OK {
		return fail.Check("%s", strings.TrimPrefix(e.Error(), ": "))
	}
	return a.PrintText(out.text() + "proven\n")
}

// proveAll proves a schedule in place and out of place, as it says it may run.
func proveAll(s *schedule.Schedule) error {
	r, err := s.Request(s.Unit(), coll.Float32)
	if err != nil {
		return err
	}
	for _, mode := range []struct{ may, inPlace bool }{{s.OutOfPlace, false}, {s.InPlace, true}} {
		if r.InPlace = mode.inPlace; !mode.may {
			continue
		}
		if err := s.Check(s.Alone(), r); err != nil {
			return err
		}
	}
	return nil
}
