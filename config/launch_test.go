package config

import (
	"strings"
	"testing"
)

// TestFindLaunch reads what launchers set.
func TestFindLaunch(t *testing.T) {
	for _, c := range []struct{ env, want string }{
		{"", ""},
		{"RANK=3 WORLD_SIZE=8 MASTER_ADDR=n0 MASTER_PORT=29500 TORCHELASTIC_RUN_ID=x", "torchrun 3/8 n0:29501"},
		{"RANK=3", ""},
		{"OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=2 PMIX_NAMESPACE=j", "Open MPI 1/2 127.0.0.1:"},
		{"OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=1", "Open MPI 1/2 "},
		{"OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=1 NCCL_COMM_ID=h:1", "Open MPI 1/2 h:1"},
		{"SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_JOB_ID=7 SLURM_STEP_NODELIST=gpu[003-007,9]", ""},
		{"SLURM_PROCID=2 SLURM_NTASKS=4 SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_STEP_NODELIST=gpu[003-007,9]", "Slurm 2/4 gpu003:"},
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

func TestFirstHost(t *testing.T) {
	for list, want := range map[string]string{
		"": "", "a": "a", "a,b": "a", "gpu[003-007,9],x": "gpu003", "n[1,5]-ib,m": "n1-ib", "a,n[1-2]": "a", "n[1": "",
	} {
		if got := firstHost(list); got != want {
			t.Errorf("%s: %q, want %q", list, got, want)
		}
	}
}
