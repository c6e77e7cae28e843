package config

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// Launch is a process's place among those that a launcher started together.
type Launch struct {
	By          string // torchrun, Open MPI, PMI or Slurm; empty: none, one process
	Rank, Ranks int
	// Root is where rank 0 listens, HOST:PORT; empty where the launcher does not
	// tell.
	Root string
	// Job tells this start from others; of it the secret is made unless one is
	// given.
	Job string
}

// launcher is what a launcher puts into the environment.
type launcher struct {
	by, rank, ranks string
	root            func(get lookup) (root, job string)
}

type lookup func(name string) (string, bool)

func (g lookup) text(name string) string { v, _ := g(name); return v }

// launchers go from the innermost: torchrun and mpirun run under Slurm too.
var launchers = []launcher{
	{"torchrun", "RANK", "WORLD_SIZE", torchRoot},
	{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", openMPIRoot},
	{"PMI", "PMI_RANK", "PMI_SIZE", pmiRoot},
	{"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", slurmRoot},
	{"Slurm", "SLURM_PROCID", "SLURM_NTASKS", slurmRoot},
}

// FindLaunch reads the environment of torchrun, Open MPI, PMI or Slurm. The
// zero Launch stands for a process that was started alone. NCCL_COMM_ID goes
// before what the launcher says of the root.
func FindLaunch(getenv func(name string) (string, bool)) (Launch, error) {
	get := lookup(getenv)
	for _, l := range launchers {
		rank, has := get(l.rank)
		ranks, sized := get(l.ranks)
		if !has || !sized || rank == "" || ranks == "" {
			continue
		}
		if l.by == "Slurm" && get.text("SLURM_STEP_ID") == "" {
			continue // in a batch script or an allocation's shell, not under srun
		}
		out := Launch{By: l.by}
		var err error
		if out.Rank, err = strconv.Atoi(rank); err != nil {
			return out, fmt.Errorf("%s=%s of %s is no rank", l.rank, rank, l.by)
		}
		if out.Ranks, err = strconv.Atoi(ranks); err != nil || out.Ranks < 1 || out.Rank < 0 || out.Rank >= out.Ranks {
			return out, fmt.Errorf("%s=%s and %s=%s of %s: ranks go from 0 to one less than their number", l.rank, rank, l.ranks, ranks, l.by)
		}
		out.Root, out.Job = l.root(get)
		if id := get.text("NCCL_COMM_ID"); id != "" {
			out.Root = id
		}
		return out, nil
	}
	return Launch{}, nil
}

// torchRoot: the store of torchrun has MASTER_PORT, so the next one is taken.
func torchRoot(get lookup) (root, job string) {
	port, err := strconv.Atoi(get.text("MASTER_PORT"))
	if host := get.text("MASTER_ADDR"); host != "" && err == nil {
		root = net.JoinHostPort(host, strconv.Itoa(port+1))
	}
	return root, "torchrun " + get.text("TORCHELASTIC_RUN_ID") + " " + get.text("MASTER_PORT")
}

// openMPIRoot knows the root only where all ranks are on one host.
func openMPIRoot(get lookup) (root, job string) {
	job = "Open MPI " + get.text("PMIX_NAMESPACE") + get.text("OMPI_MCA_ess_base_jobid")
	if get.text("OMPI_COMM_WORLD_LOCAL_SIZE") == get.text("OMPI_COMM_WORLD_SIZE") {
		root = net.JoinHostPort("127.0.0.1", strconv.Itoa(portOf(job)))
	}
	return root, job
}

// pmiRoot serves MPICH, Intel MPI, Flux, and srun --mpi=pmi2, which says more.
func pmiRoot(get lookup) (root, job string) {
	if get.text("SLURM_STEP_ID") != "" {
		return slurmRoot(get)
	}
	job = "PMI " + get.text("PMI_JOBID") + get.text("FLUX_JOB_ID")
	if n := get.text("MPI_LOCALNRANKS"); n != "" && n == get.text("PMI_SIZE") {
		root = net.JoinHostPort("127.0.0.1", strconv.Itoa(portOf(job)))
	}
	return root, job
}

func slurmRoot(get lookup) (root, job string) {
	list := get.text("SLURM_STEP_NODELIST")
	if list == "" {
		list = get.text("SLURM_NODELIST")
	}
	job = "Slurm " + get.text("SLURM_JOB_ID") + "." + get.text("SLURM_STEP_ID")
	if host := firstHost(list); host != "" {
		root = net.JoinHostPort(host, strconv.Itoa(portOf(job)))
	}
	return root, job
}

// firstHost is the first of Slurm's list: of "gpu[003-007,9],x" it is gpu003.
func firstHost(list string) string {
	before, after, grouped := strings.Cut(list, "[")
	if name, _, more := strings.Cut(before, ","); more || !grouped {
		return name
	}
	in, behind, closed := strings.Cut(after, "]")
	if !closed {
		return ""
	}
	if i := strings.IndexAny(in, ",-"); i >= 0 {
		in = in[:i]
	}
	behind, _, _ = strings.Cut(behind, ",")
	return before + in + behind
}

// portOf gives all processes of a job the same port outside the ephemeral
// ones.
func portOf(job string) int {
	sum := sha256.Sum256([]byte(job))
	return 20000 + int(binary.BigEndian.Uint16(sum[:]))%10000
}
