package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/simccl/simccl/app/process"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/real/realtest"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"simccl": func() {
			os.Exit(start(os.Args[1:],
				appOf(process.Process{Out: os.Stdout, Err: os.Stderr, Environ: os.Environ()})))
		},
	})
}

func TestScripts(t *testing.T) { scripts(t, "testdata/script", nil) }

// long are the scripts that simulate most: -short leaves them out.
var long = []string{"trace_run", "fabric", "trace_bounds", "diff", "doubts", "calibrate", "trace_compare",
	"sweep_show",
	"check", "topo", "bench_gpu"}

// TestScriptsOnMadeUpGPUs runs what needs GPUs on the driver of tests.
func TestScriptsOnMadeUpGPUs(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it compiles kernels")
	}
	scripts(t, "testdata/gpu", map[string]string{"LD_LIBRARY_PATH": realtest.FakeDriver(t),
		"NCCL_NVLS_ENABLE": "0"})
}

func scripts(t *testing.T, dir string, env map[string]string) {
	topos := golden.Root(t, "testdata", "topos")
	files, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts in %s: %v", dir, err)
	}
	if testing.Short() {
		files = slices.DeleteFunc(files, func(f string) bool {
			return slices.Contains(long, strings.TrimSuffix(filepath.Base(f), ".txtar"))
		})
	}
	testscript.Run(t, testscript.Params{
		Setup: func(e *testscript.Env) error {
			e.Setenv("TOPOS", topos)
			e.Setenv("GORACE", os.Getenv("GORACE")) // else each command ends with a second of sleep
			for k, v := range env {
				e.Setenv(k, v)
			}
			return nil
		},
		Files:               files,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Condition: func(name string) (bool, error) {
			if name != "rdma" {
				return false, fmt.Errorf("no condition %q", name)
			}
			there, err := filepath.Glob("/sys/class/infiniband/*")
			return len(there) > 0, err
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"status": expectStatus,
			"arrows": compareArrows,
		},
	})
}

// expectStatus runs simccl and wants an exit status: status 6 run --bad
func expectStatus(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 1 || neg {
		ts.Fatalf("usage: status CODE args…")
	}
	want := args[0]
	err := ts.Exec("simccl", args[1:]...)
	got := "0"
	if e, ok := err.(interface{ ExitCode() int }); ok {
		got = string(rune('0' + e.ExitCode()))
	} else if err != nil {
		ts.Fatalf("simccl: %v", err)
	}
	if got != want {
		ts.Fatalf("simccl %v: exit status %s, want %s", args[1:], got, want)
	}
}

// compareArrows wants as many arrows in a trace as SimCCL's list has messages:
// arrows TRACE CSV
func compareArrows(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 || neg {
		ts.Fatalf("usage: arrows TRACE CSV")
	}
	arrows := strings.Count(ts.ReadFile(args[0]), `{"ph":"s"`)
	messages := strings.Count(ts.ReadFile(args[1]), "\n") - 1
	if arrows != messages || arrows == 0 {
		ts.Fatalf("%d arrows in %s for %d messages in %s", arrows, args[0], messages, args[1])
	}
}

// simccl runs a command line that must succeed and returns what it prints.
func simccl(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if code := run(t.Context(), args, appOf(process.Process{Out: &out, Err: &errs})); code != 0 {
		t.Fatalf("simccl %s: exit status %d\n%s%s", strings.Join(args, " "), code, out.String(),
			errs.String())
	}
	return out.String()
}
