package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFindLaunch reads what launchers set.
func TestFindLaunch(t *testing.T) {
	for _, c := range []struct{ env, want string }{
		{"", ""},
		{"RANK=3 WORLD_SIZE=8 MASTER_ADDR=n0 MASTER_PORT=29500 TORCHELASTIC_RUN_ID=x",
			"torchrun 3/8 n0:29501"},
		{"RANK=3", "error: RANK=3 of torchrun without WORLD_SIZE"},
		{"WORLD_SIZE=3", "error: WORLD_SIZE=3 of torchrun without RANK"},
		{"PMI_RANK=3", "error: PMI_RANK=3 of PMI without PMI_SIZE"},
		{"RANK=3 OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=2",
			"Open MPI 1/2 127.0.0.1:"},
		{"OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=2 PMIX_NAMESPACE=j",
			"Open MPI 1/2 127.0.0.1:"},
		{"OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=1", "Open MPI 1/2 "},
		{"OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=1 NCCL_COMM_ID=h:1",
			"Open MPI 1/2 h:1"},
		{"SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_JOB_ID=7 SLURM_STEP_NODELIST=gpu[003-007,9]", ""},
		{"SLURM_PROCID=2 SLURM_NTASKS=4 SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_STEP_NODELIST=gpu[003-007,9]",
			"Slurm 2/4 gpu003:"},
		{"SLURM_PROCID=2 SLURM_NTASKS=4 RANK=0 WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=1", "torchrun 0/2 a:2"},
		{"RANK=8 WORLD_SIZE=8", "error: ranks go from 0"},
		{"RANK=x WORLD_SIZE=8", "error: is no rank"},
	} {
		env := map[string]string{}
		for kv := range strings.FieldsSeq(c.env) {
			k, v, _ := strings.Cut(kv, "=")
			env[k] = v
		}
		l, err := FindLaunch(func(n string) (string, bool) { v, ok := env[n]; return v, ok })
		if want, bad := strings.CutPrefix(c.want, "error: "); bad {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", c.env, err, want)
			}
			continue
		}
		got := ""
		if l.By != "" {
			got = l.By + " " + string(rune('0'+l.Rank)) + "/" + string(rune('0'+l.Ranks)) + " " + l.Root
		}
		if err != nil || !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q %v, want %q", c.env, got, err, c.want)
		}
	}
}

// TestLaunchersAsTheyAre reads whole environments of launchers, which set more
// than one needs and often another's variables too.
func TestLaunchersAsTheyAre(t *testing.T) {
	for file, want := range map[string]Launch{
		"torchrun-2x4": {By: "torchrun", Rank: 6, Ranks: 8, Root: "gpu0.cluster:41308",
			Job: "torchrun 1f0c6a9e-7b0c-4f3e-9d52-2f6d3d8f8a11 41307"},
		"kubeflow-pytorchjob": {By: "torchrun", Rank: 3, Ranks: 4, Root: "train-master-0:23457",
			Job: "torchrun  23456"},
		"openmpi4-1x4": {By: "Open MPI", Rank: 1, Ranks: 4, Root: "127.0.0.1:*", OneHost: true,
			Job: "Open MPI 22152478732215247873"},
		"openmpi5-2x4": {By: "Open MPI", Rank: 5, Ranks: 8, Root: "gpu0:*", Guess: true,
			Job: "Open MPI prterun-gpu0-31337@1"},
		"mpich-1x2":    {By: "PMI", Rank: 1, Ranks: 2, PMI: 9, OneHost: true, Job: "PMI "},
		"intelmpi-2x2": {By: "PMI", Rank: 3, Ranks: 4, PMI: 10, Job: "PMI "},
		// Recorded here: see the first lines of the files.
		"seen-openmpi4-1x2": {By: "Open MPI", Rank: 0, Ranks: 2, Root: "127.0.0.1:*", OneHost: true,
			Job: "Open MPI 11190927371119092737"},
		"seen-openmpi4-2x1": {By: "Open MPI", Rank: 1, Ranks: 2, Root: "192.0.2.2:*", Guess: true,
			Job: "Open MPI 15060172811506017281"},
		"seen-mpich4-1x2": {By: "PMI", Rank: 0, Ranks: 2, PMI: 6, OneHost: true, Job: "PMI "},
		"seen-mpich4-2x1": {By: "PMI", Rank: 1, Ranks: 2, PMI: 6, Job: "PMI "},
		"seen-slurm22-1x2": {By: "Slurm", Rank: 0, Ranks: 2, Root: "vm:*", OneHost: true,
			Job: "Slurm 2.0"},
		"seen-slurm22-2x2":        {By: "Slurm", Rank: 3, Ranks: 4, Root: "n1:*", Job: "Slurm 1.0"},
		"seen-slurm22-mpich4-2x1": {By: "PMI", Rank: 1, Ranks: 2, PMI: 5, Job: "PMI "},
		"seen-slurm22-pmi2": {By: "PMI", Rank: 0, Ranks: 2, Root: "vm:*", OneHost: true,
			Job: "Slurm 5.0"},
		"slurm-2x8": {By: "Slurm", Rank: 9, Ranks: 16, Root: "dgx-h100-014:*",
			Job: "Slurm 918273.3"},
		"slurm-batch": {},
		"slurm-pmi2":  {By: "PMI", Rank: 2, Ranks: 4, Root: "n1:*", Job: "Slurm 42.0"},
		"slurm-torchrun": {By: "torchrun", Rank: 7, Ranks: 8, Root: "a01:29501",
			Job: "torchrun 77 29500"},
		"slurm-openmpi": {By: "Open MPI", Rank: 6, Ranks: 8, Root: "b1:29600",
			Job: "Open MPI 4059955201"},
		"flux": {By: "PMI", Rank: 3, Ranks: 4, Job: "PMI f23S4Xq9"},
	} {
		text, err := os.ReadFile(filepath.Join("testdata", "launch", file+".env"))
		if err != nil {
			t.Fatal(err)
		}
		env := map[string]string{}
		for line := range strings.Lines(string(text)) {
			if k, v, ok := strings.Cut(strings.TrimSpace(line), "="); ok && line[0] != '#' {
				env[k] = v
			}
		}
		got, err := FindLaunch(func(n string) (string, bool) { v, ok := env[n]; return v, ok })
		if host, open := strings.CutSuffix(want.Root, ":*"); open && strings.HasPrefix(got.Root, host+":") {
			want.Root = got.Root // of a port made from the job
		}
		if err != nil || got != want {
			t.Errorf("%s: %+v %v, want %+v", file, got, err, want)
		}
	}
}

func TestFirstHost(t *testing.T) {
	for list, want := range map[string]string{
		"": "", "a": "a", "a,b": "a", "gpu[003-007,9],x": "gpu003", "n[1,5]-ib,m": "n1-ib", "a,n[1-2]": "a",
		"n[1": "",
	} {
		if got := firstHost(list); got != want {
			t.Errorf("%s: %q, want %q", list, got, want)
		}
	}
}
