package sweep

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/internal/fail"
)

// scheduler describes the variables in which a batch scheduler passes an array job's index and size.
type scheduler struct {
	name         string
	index, count string // variables
	first        string // variable of the lowest index, "": base
	base         int
}

// schedulers and their variables: sbatch(1), qsub(1B) of PBS, bsub(1), qsub(1) of Grid
// Engine, Kubernetes' Indexed Jobs (which have no variable of the count; emit writes SIMCCL_SHARDS), MPI
// launchers.
var schedulers = []scheduler{
	{"Slurm", "SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN", 0},
	{"Kubernetes", "JOB_COMPLETION_INDEX", shardsVariable, "", 0},
	{"PBS", "PBS_ARRAY_INDEX", shardsVariable, "", 0},
	{"LSF", "LSB_JOBINDEX", "LSB_JOBINDEX_END", "", 1},
	{"Grid Engine", "SGE_TASK_ID", "SGE_TASK_LAST", "SGE_TASK_FIRST", 0},
	{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "", 0},
	{"PMI", "PMI_RANK", "PMI_SIZE", "", 0},
}

// shardsVariable is the variable with the number of shards for schedulers without one.
const shardsVariable = "SIMCCL_SHARDS"

// ParseShard reads "3/8" (from 0), or "auto": the task that a scheduler's variables
// name. "" is all of a sweep: 0 of 1.
func ParseShard(text string, getenv func(string) (string, bool)) (i, n int, err error) {
	switch text {
	case "":
		return 0, 1, nil
	case "auto":
		return autoShard(getenv)
	}
	a, b, ok := strings.Cut(text, "/")
	i, err1 := strconv.Atoi(a)
	n, err2 := strconv.Atoi(b)
	if !ok || err1 != nil || err2 != nil || i < 0 || n < 1 || i >= n || n > 1<<20 {
		return 0, 0, fail.Usage("--shard %s: write I/N with I from 0 to N-1, or auto", text)
	}
	return i, n, nil
}

// autoShard returns shard and number of shards from the one scheduler whose variables are set.
func autoShard(getenv func(string) (string, bool)) (int, int, error) {
	var found []scheduler
	for _, s := range schedulers {
		// LSF and Grid Engine set the index of jobs that are no arrays, too.
		if v, ok := getenv(s.index); ok && v != "" && v != "undefined" && !(s.name == "LSF" && v == "0") {
			found = append(found, s)
		}
	}
	if len(found) == 0 {
		var names []string
		for _, s := range schedulers {
			names = append(names, s.index)
		}
		return 0, 0, fail.Usage("--shard auto: none of %s is set; write --shard I/N",
			strings.Join(names, ", "))
	}
	if slices.ContainsFunc(found[1:], func(s scheduler) bool { return s.name != found[0].name }) {
		return 0, 0, fail.Usage("--shard auto: %s and %s are both set; write --shard I/N", found[0].index,
			found[1].index)
	}
	s := found[0]
	number := func(name string) (int, error) {
		v, ok := getenv(name)
		if !ok {
			return 0, fail.Usage("--shard auto: %s of %s is not set", name, s.name)
		}
		n, err := strconv.Atoi(v)
		if err != nil {
			return 0, fail.Usage("--shard auto: %s=%s is no number", name, v)
		}
		return n, nil
	}
	i, err := number(s.index)
	if err != nil {
		return 0, 0, err
	}
	n, err := number(s.count)
	if err != nil {
		return 0, 0, err
	}
	first := s.base
	if s.first != "" {
		if first, err = number(s.first); err != nil {
			return 0, 0, err
		}
	}
	if s.name == "Grid Engine" {
		n -= first - 1
	}
	if i -= first; i < 0 || i >= n {
		return 0, 0, fail.Usage("--shard auto: task %d of %d by %s's variables; an array must have no gaps",
			i, n, s.name)
	}
	return i, n, nil
}

// Emit writes a script or manifest that runs the shards: slurm, k8s or parallel.
func Emit(kind, spec, dir string, shards int, limit string) (string, error) {
	if shards < 1 || shards > 100_000 {
		return "", fail.Usage("--shards %d: write 1 to 100000", shards)
	}
	name := "simccl-sweep"
	switch kind {
	case "slurm":
		return fmt.Sprintf(`#!/bin/bash
#SBATCH --job-name=%s
#SBATCH --array=0-%d
#SBATCH --cpus-per-task=2
#SBATCH --requeue
#SBATCH --open-mode=append
# A shard that runs out of time exits with 75 and is queued again; finished points are
# kept. One that was killed (137), by the lack of memory for one, is tried five times.
simccl sweep %s --out %s --shard auto --max-time %s
status=$?
if [ $status -eq 75 ] || { [ $status -eq 137 ] && [ "${SLURM_RESTART_COUNT:-0}" -lt 5 ]; }; then
  scontrol requeue "${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}"
fi
exit $status
`, name, shards-1, quote(spec), quote(dir), quote(limit)), nil
	case "k8s":
		return fmt.Sprintf(`# The specification and the results are on a volume that all pods share.
apiVersion: batch/v1
kind: Job
metadata:
  name: %s
spec:
  completionMode: Indexed
  completions: %d
  parallelism: %d
  backoffLimitPerIndex: 100
  maxFailedIndexes: %d
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: simccl
          image: simccl:latest
          command: ["simccl", "sweep", %q, "--out", %q, "--shard", "auto", "--max-time", %q]
          env:
            - name: %s
              value: "%d"
          volumeMounts:
            - name: work
              mountPath: /data
          workingDir: /data
      volumes:
        - name: work
          persistentVolumeClaim:
            claimName: %s
`, name, shards, min(shards, 64), shards, spec, dir, limit, shardsVariable, shards, name), nil
	case "parallel":
		return fmt.Sprintf("seq 0 %d | parallel --joblog %s --resume-failed simccl sweep %s --out %s "+
			"--shard {}/%d\n",
			shards-1, quote(dir+".joblog"), quote(spec), quote(dir), shards), nil
	}
	return "", fail.Usage("emit %s: write slurm, k8s or parallel", kind)
}

// quote quotes a word for a shell if necessary.
func quote(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-") ==
		"" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
