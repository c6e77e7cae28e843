package root_test

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/cli/bench"
	"github.com/simccl/simccl/app/cli/decide"
	"github.com/simccl/simccl/app/cli/flags"
	"github.com/simccl/simccl/app/cli/jobs"
	"github.com/simccl/simccl/app/cli/root"
	"github.com/simccl/simccl/app/cli/run"
	"github.com/simccl/simccl/app/cli/schedule"
	"github.com/simccl/simccl/app/cli/sweep"
	"github.com/simccl/simccl/app/cli/topo"
	"github.com/simccl/simccl/app/cli/trace"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/scenario"
	"github.com/spf13/cobra"
)

// TestMembersHaveFlags: every member that a text of package fail names in braces
// has a flag, which some command declares.
func TestMembersHaveFlags(t *testing.T) {
	declared := map[string]string{}
	for _, c := range everyCommand() {
		for member, flag := range flags.Names(c.Flags()) {
			declared[member] = flag
		}
	}
	member := regexp.MustCompile(`\{([A-Z]\w*)\}`)
	call := regexp.MustCompile(`fail\.(Usage|File|NotYet|Check)\(|^\s*\{.*"\{[A-Z]|"\{[A-Z]\w*\}"`)
	found := 0
	for _, dir := range []string{"nccltests/options", "app/bench", "real/bench", "real/perftest", "scenario",
		"study/packetrun"} {
		files, err := filepath.Glob(filepath.Join(golden.Root(t), dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(dir, err)
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(text)) {
				if strings.HasSuffix(name, "_test.go") || !call.MatchString(line) {
					continue
				}
				for _, m := range member.FindAllStringSubmatch(line, -1) {
					found++
					if declared[m[1]] == "" {
						t.Errorf("%s: {%s} has no flag that a command declares", filepath.Base(name), m[1])
					}
				}
			}
		}
	}
	if found < 40 {
		t.Errorf("only %d members found", found)
	}
}

// runner are the Options of a command.
type runner interface {
	Run(context.Context, *cli.App) error
}

// optionsOf are the Options of every command that does not only hold others.
func optionsOf() map[string]runner {
	return map[string]runner{
		"advise": &jobs.AdviseOptions{}, "bench": &bench.Options{}, "bench verbs": &bench.VerbsOptions{},
		"calibrate": &bench.CalibrateOptions{}, "calibrate check": &bench.CalibrateCheckOptions{},
		"calibrate compute": &bench.CalibrateComputeOptions{},
		"calibrate fit":     &bench.FitOptions{}, "calibrate measure": &bench.MeasureOptions{},
		"calibrate set": &bench.SetOptions{}, "check": &decide.CheckOptions{},
		"class check": &bench.ClassCheckOptions{}, "class diff": &bench.ClassDiffOptions{},
		"class show": &bench.ClassShowOptions{}, "diff": &run.DiffOptions{}, "env": &decide.EnvOptions{},
		"explain": &decide.ExplainOptions{}, "graph": &decide.GraphOptions{},
		"groups":   &decide.GroupsOptions{},
		"diagnose": &bench.DiagnoseOptions{}, "identify": &root.IdentifyOptions{},
		"inspect":     &decide.InspectOptions{},
		"intercept":   &jobs.InterceptOptions{},
		"network run": &run.NetworkOptions{}, "overlap": &bench.OverlapOptions{},
		"plan":   &decide.PlanOptions{},
		"replay": &jobs.ReplayOptions{}, "report": &run.ReportOptions{}, "run": &run.RunOptions{},
		"scenario check": &run.ScenarioCheckOptions{}, "scenario show": &run.ScenarioShowOptions{},
		"schedule check": &schedule.CheckOptions{}, "schedule convert": &schedule.ConvertOptions{},
		"schedule show": &schedule.ShowOptions{}, "serve": &root.ServeOptions{}, "sweep": &sweep.Options{},
		"sweep emit": &sweep.EmitOptions{}, "sweep merge": &sweep.MergeOptions{},
		"sweep plan": &sweep.PlanOptions{}, "sweep search": &sweep.SearchOptions{},
		"sweep show": &sweep.ShowOptions{}, "sweep status": &sweep.StatusOptions{},
		"topo anonymize": &topo.AnonymizeOptions{}, "topo convert": &topo.ConvertOptions{},
		"topo detect": &topo.DetectOptions{}, "topo diff": &topo.DiffOptions{},
		"topo fabric": &topo.FabricOptions{}, "topo fabric show": &topo.FabricShowOptions{},
		"topo fabric place": &topo.FabricPlaceOptions{}, "topo gen": &topo.GenOptions{},
		"topo lint": &topo.LintOptions{}, "topo list": &topo.ListOptions{}, "topo show": &topo.ShowOptions{},
		"trace diff": &trace.DiffOptions{}, "trace merge": &trace.MergeOptions{},
		"trace stats": &trace.StatsOptions{}, "trace validate": &trace.ValidateOptions{},
		"tune": &decide.TuneOptions{}, "version": root.VersionOptions{},
		"workload convert": &jobs.WorkloadConvertOptions{},
		"workload gen":     &jobs.WorkloadGenOptions{}, "workload lint": &jobs.WorkloadLintOptions{},
		"workload scale": &jobs.WorkloadScaleOptions{}, "workload show": &jobs.WorkloadShowOptions{},
		"workload slice": &jobs.WorkloadSliceOptions{},
	}
}

// everyCommand are the commands of root, hidden ones too, by their path, but for those that only
// hold others, cobra's own, and topics.
func everyCommand() map[string]*cobra.Command {
	out := map[string]*cobra.Command{}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		_, path, _ := strings.Cut(c.CommandPath(), " ")
		if path == "completion" || path == "help" {
			return
		}
		if c.RunE != nil && !strings.HasPrefix(fmt.Sprint(c.ValidateArgs([]string{"?"})), "unknown command") {
			out[path] = c
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root.Command(&cli.App{}))
	return out
}

// TestFlagsSetMembers: every command has Options, and the member that a flag is declared to set
// exists: in a scenario.Spec by its path, or in the Options of the command by its name.
func TestFlagsSetMembers(t *testing.T) {
	options, found := optionsOf(), 0
	for path, c := range everyCommand() {
		o := options[path]
		if o == nil {
			t.Errorf("%s has no Options", path)
			continue
		}
		delete(options, path)
		for member, flag := range flags.Names(c.Flags()) {
			found++
			if member[0] >= 'a' && !hasPath(reflect.TypeFor[scenario.Spec](), member) {
				t.Errorf("%s %s: a Spec has no %s", path, flag, member)
			}
			of := reflect.Indirect(reflect.ValueOf(o)).Type()
			if path == "diff" { // words that each side parses
				of = reflect.TypeFor[run.RunOptions]()
			}
			if member[0] < 'a' && !hasMember(of, member) {
				t.Errorf("%s %s: %T has no %s", path, flag, o, member)
			}
		}
	}
	for path := range options {
		t.Errorf("there is no command %s", path)
	}
	if found < 300 {
		t.Errorf("only %d members found", found)
	}
}

// TestCommandsRunOptions: what a command does is Options.Run: its RunE sets members and ends there.
func TestCommandsRunOptions(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(golden.Root(t), "app", "cli", "*", "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	found := 0
	for _, name := range files {
		at := token.NewFileSet()
		f, err := parser.ParseFile(at, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			kv, ok := n.(*ast.KeyValueExpr)
			if !ok || fmt.Sprint(kv.Key) != "RunE" ||
				slices.Contains([]string{"help.go", "root.go"}, filepath.Base(name)) {
				return true
			}
			switch run := kv.Value.(type) {
			case *ast.FuncLit:
				ok = endsInRun(run.Body)
			case *ast.CallExpr: // cli.RunWith and others, which end in Run
				sel, is := run.Fun.(*ast.SelectorExpr)
				ok = is && fmt.Sprint(sel.X) == "cli" &&
					slices.Contains([]string{"RunWith", "RunWithOne", "RunOf"}, sel.Sel.Name)
			default:
				ok = false
			}
			if !ok {
				t.Errorf("%s: RunE does not end in return o.Run(cmd.Context(), a)", at.Position(kv.Pos()))
			}
			found++
			return true
		})
	}
	if found < len(optionsOf()) {
		t.Errorf("%d functions RunE of %d commands", found, len(optionsOf()))
	}
}

// endsInRun reports whether the last statement of a function returns what a method Run does.
func endsInRun(body *ast.BlockStmt) bool {
	last, ok := body.List[len(body.List)-1].(*ast.ReturnStmt)
	if !ok || len(last.Results) != 1 {
		return false
	}
	call, ok := last.Results[0].(*ast.CallExpr)
	if !ok {
		return false
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	return ok && method.Sel.Name == "Run"
}

// hasMember reports whether a struct, or one that it holds, has a member of a name.
func hasMember(of reflect.Type, name string) bool {
	for i := range of.NumField() {
		f := of.Field(i)
		if f.IsExported() && (f.Name == name || f.Type.Kind() == reflect.Struct && hasMember(f.Type, name)) {
			return true
		}
	}
	return false
}

// hasPath reports whether a struct has a member by its path in JSON.
func hasPath(of reflect.Type, path string) bool {
	name, rest, more := strings.Cut(path, ".")
	for i := range of.NumField() {
		f := of.Field(i)
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == name {
			return !more || f.Type.Kind() == reflect.Struct && hasPath(f.Type, rest)
		}
	}
	return false
}

// TestArgumentsAreUsage: too few and too many arguments of any command are its user's error and no defect of
// ours.
func TestArgumentsAreUsage(t *testing.T) {
	for path, c := range everyCommand() {
		for n := range 8 {
			err := c.ValidateArgs(slices.Repeat([]string{"x"}, n))
			if s := cli.ExitStatus(err); s != cli.StatusOK && s != cli.StatusUsage {
				t.Errorf("%s with %d arguments: exit status %d, %v", path, n, s, err)
			}
		}
	}
}
