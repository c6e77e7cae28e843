// Package readers reads what simccl writes for other programs with their own libraries:
// Parquet files, and Jobs of Kubernetes. It is a module of its own, so that these
// libraries are no part of simccl's.
package readers

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	batch "k8s.io/api/batch/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

const study = `base: {workload: {op: all_reduce}}
grid: {nodes: [1, 2], size: [8, 1K, 64K], NCCL_ALGO: [Ring, CollNetChain]}
seeds: 1..2
`

// long has points of some milliseconds, so that a process can be killed among them.
const long = `base: {workload: {op: all_reduce}}
grid: {nodes: [2, 3], size: [1K, 64K, 4M], op: [all_reduce, alltoall]}
seeds: 1..4
`

// simccl runs the program that SIMCCL names, in a folder.
func simccl(t *testing.T, dir string, env []string, args ...string) []byte {
	t.Helper()
	name := os.Getenv("SIMCCL")
	if name == "" {
		t.Skip("SIMCCL names no program: write SIMCCL=$PWD/bin/simccl")
	}
	c := exec.Command(name, args...)
	c.Dir, c.Env = dir, append(os.Environ(), env...)
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.Output()
	var exit *exec.ExitError
	// Status 7: points of the study fail, which is part of it.
	if errors.As(err, &exit) && exit.ExitCode() != 7 {
		t.Fatalf("%v: %v\n%s", args, err, errs.String())
	}
	return out
}

// TestParquet: every cell of a merged Parquet file is that of the CSV.
func TestParquet(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "s.yaml"), []byte(study), 0o666); err != nil {
		t.Fatal(err)
	}
	simccl(t, dir, nil, "sweep", "s.yaml", "--out", "r")
	simccl(t, dir, nil, "sweep", "merge", "r", "-o", "a.csv", "--with-provenance")
	simccl(t, dir, nil, "sweep", "merge", "r", "-o", "a.parquet", "--with-provenance")
	text, err := os.ReadFile(filepath.Join(dir, "a.csv"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "a.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	if about, ok := f.Lookup("simccl.sweep"); !ok || !strings.Contains(about, `"classes"`) {
		t.Errorf("no manifest in the file: %q", about)
	}
	r := parquet.NewReader(f)
	defer r.Close()
	rows := make([]parquet.Row, len(want))
	n, err := r.ReadRows(rows)
	if err != nil && err != io.EOF {
		t.Fatal(err)
	}
	if n != len(want)-1 || n != 24 {
		t.Fatalf("%d rows, %d in the CSV", n, len(want)-1)
	}
	for i, name := range want[0] {
		if got := f.Schema().Fields()[i].Name(); got != name {
			t.Errorf("column %d is %s, not %s", i, got, name)
		}
	}
	empty := 0
	for i, row := range rows[:n] {
		for k, v := range row {
			if w := want[i+1][k]; !same(v, w) {
				t.Errorf("row %d, %s: %v, not %q", i, want[0][k], v, w)
			}
			if v.IsNull() {
				empty++
			}
		}
	}
	if empty == 0 {
		t.Error("no cell is empty; failed points have none")
	}
}

// differs is the first line of a that b has not.
func differs(a, b []byte) []byte {
	for line := range bytes.Lines(a) {
		if !bytes.Contains(b, line) {
			return line
		}
	}
	return nil
}

// same compares a value with a cell of a CSV, where six digits of cpu_s are written.
func same(v parquet.Value, cell string) bool {
	switch {
	case v.IsNull():
		return cell == ""
	case v.Kind() == parquet.ByteArray:
		return string(v.ByteArray()) == cell
	case v.Kind() == parquet.Double:
		want, err := strconv.ParseFloat(cell, 64)
		return err == nil && (v.Double() == want || abs(v.Double()-want) < 1e-5*abs(want))
	}
	return strconv.FormatInt(v.Int64(), 10) == cell
}

func abs(x float64) float64 { return max(x, -x) }

// TestKubernetes: the manifest is a Job of batch/v1, without a member that the schema lacks,
// and says what an Indexed Job needs. Its command is run as pods would, some of them
// killed; the merged results are those of one process.
func TestKubernetes(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "s.yaml"), []byte(long), 0o666); err != nil {
		t.Fatal(err)
	}
	const shards = 5
	cut := 0
	text := simccl(t, dir, nil, "sweep", "emit", "k8s", "s.yaml", "--shards", strconv.Itoa(shards), "--out",
		"pods", "--max-time", "10m")
	data, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		t.Fatal(err)
	}
	var job batch.Job
	if strict, err := json.UnmarshalStrict(data, &job, json.DisallowDuplicateFields,
		json.DisallowUnknownFields); err != nil || len(strict) > 0 {
		t.Fatalf("not a Job of batch/v1: %v %v\n%s", err, strict, text)
	}
	s := job.Spec
	if job.APIVersion != "batch/v1" || job.Kind != "Job" || s.CompletionMode == nil ||
		*s.CompletionMode != batch.IndexedCompletion || s.Completions == nil || *s.Completions != shards ||
		s.Parallelism == nil || *s.Parallelism != shards || s.BackoffLimitPerIndex == nil ||
		s.Template.Spec.RestartPolicy != "Never" {
		t.Fatalf("%+v", job)
	}
	pod := s.Template.Spec.Containers[0]
	command := append(pod.Command, pod.Args...)
	if command[0] != "simccl" {
		t.Fatalf("the command is %q", command)
	}
	for index := range shards {
		env := []string{fmt.Sprintf("JOB_COMPLETION_INDEX=%d", index)}
		for _, e := range pod.Env {
			env = append(env, e.Name+"="+e.Value)
		}
		if index%2 == 1 { // killed, and begun again as a new pod
			killed := exec.Command(os.Getenv("SIMCCL"), append(command[1:], "--jobs", "1")...)
			killed.Dir, killed.Env = dir, append(os.Environ(), env...)
			if err := killed.Start(); err != nil {
				t.Fatal(err)
			}
			for {
				parts, _ := filepath.Glob(filepath.Join(dir, "pods", fmt.Sprintf("part-%dof%d-*", index,
					shards)))
				if len(parts) > 0 {
					if st, err := os.Stat(parts[0]); err == nil && st.Size() > 0 {
						break
					}
				}
			}
			_ = killed.Process.Kill()
			_ = killed.Wait()
			if killed.ProcessState.ExitCode() == -1 {
				cut++
			}
		}
		simccl(t, dir, env, command[1:]...)
	}
	if cut == 0 {
		t.Error("every process ended before it was killed")
	}
	simccl(t, dir, nil, "sweep", "s.yaml", "--out", "one")
	pods, one := simccl(t, dir, nil, "sweep", "merge", "pods"), simccl(t, dir, nil, "sweep", "merge", "one")
	if !bytes.Equal(pods, one) || bytes.Count(one, []byte("\n")) != 48 {
		t.Errorf("%d bytes of pods, %d of one process, %d points; the first that differs:\n%s", len(pods),
			len(one), bytes.Count(one, []byte("\n")), differs(pods, one))
	}
}
