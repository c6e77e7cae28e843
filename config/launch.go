package config

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

// Launch is a process's place among those that a launcher started together.
type Launch struct {
	By          string // torchrun, Open MPI, PMI or Slurm; empty: none, one process
	Rank, Ranks int
	// Root is the address at which rank 0 listens, HOST:PORT; empty if the launcher
	// does not give it. Guess: it is derived from where the launcher itself runs.
	Root  string
	Guess bool
	// PMI is the file number of a connection by which ranks can send each other
	// the root (real/team); 0: there is none, or the root is known.
	PMI int
	// OneHost says that all ranks are on this host.
	OneHost bool
	// Job distinguishes this start from others; the secret is derived from it
	// unless one is given.
	Job string
}

// launcher is what a launcher puts into the environment.
type launcher struct {
	by, rank, ranks string
	root            func(get lookup, out *Launch)
}

type lookup func(name string) (string, bool)

func (g lookup) text(name string) string { v, _ := g(name); return v }

// launchers are ordered from the innermost: torchrun and mpirun run under Slurm too.
var launchers = []launcher{
	{"torchrun", "RANK", "WORLD_SIZE", torchRoot},
	{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", openMPIRoot},
	{"PMI", "PMI_RANK", "PMI_SIZE", pmiRoot},
	{"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", slurmRoot},
	{"Slurm", "SLURM_PROCID", "SLURM_NTASKS", slurmRoot},
}

// FindLaunch reads the environment of torchrun, Open MPI, PMI or Slurm. The
// zero Launch represents a process that was started alone. NCCL_COMM_ID goes
// before what the launcher says of the root. A rank without the number of ranks,
// or the reverse, is an error: every process would take itself for the
// only one.
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
		if out.Ranks, err = strconv.Atoi(ranks); err != nil || out.Ranks < 1 || out.Rank < 0 ||
			out.Rank >= out.Ranks {
			return out, fmt.Errorf("%s=%s and %s=%s of %s: ranks go from 0 to one less than their number",
				l.rank, rank, l.ranks, ranks, l.by)
		}
		l.root(get, &out)
		if id := get.text("NCCL_COMM_ID"); id != "" {
			out.Root, out.Guess, out.PMI = id, false, 0
		}
		return out, nil
	}
	return Launch{}, get.half()
}

// half names what a launcher would have set too. Slurm sets numbers of tasks
// where it starts one script alone.
func (g lookup) half() error {
	for _, l := range launchers {
		rank, ranks := g.text(l.rank), g.text(l.ranks)
		switch {
		case l.by == "Slurm":
		case rank != "" && ranks == "":
			return fmt.Errorf("%s=%s of %s without %s: set or unset both", l.rank, rank, l.by, l.ranks)
		case rank == "" && ranks != "":
			return fmt.Errorf("%s=%s of %s without %s: set or unset both", l.ranks, ranks, l.by, l.rank)
		}
	}
	return nil
}

// torchRoot: the store of torchrun has MASTER_PORT, so the next one is taken.
func torchRoot(get lookup, out *Launch) {
	port, err := strconv.Atoi(get.text("MASTER_PORT"))
	if host := get.text("MASTER_ADDR"); host != "" && err == nil {
		out.Root = hostPort(host, strconv.Itoa(port+1))
	}
	local := get.text("LOCAL_WORLD_SIZE")
	out.OneHost = local != "" && local == get.text("WORLD_SIZE")
	out.Job = "torchrun " + get.text("TORCHELASTIC_RUN_ID") + " " + get.text("MASTER_PORT")
}

// openMPIRoot: between hosts nothing says where rank 0 is, but by default it is
// where mpirun was started, whose address ORTE's (Open MPI 4) and whose name
// PRRTE's (Open MPI 5) processes know.
func openMPIRoot(get lookup, out *Launch) {
	out.Job = "Open MPI " + get.text("PMIX_NAMESPACE") + get.text("OMPI_MCA_ess_base_jobid")
	host := orteHost(get.text("OMPI_MCA_orte_hnp_uri"))
	if host == "" {
		host = prrteHost(get.text("PMIX_NAMESPACE"))
	}
	switch {
	case get.text("OMPI_COMM_WORLD_LOCAL_SIZE") == get.text("OMPI_COMM_WORLD_SIZE"):
		host, out.OneHost = "127.0.0.1", true
	case host == "":
		return
	default:
		out.Guess = true
	}
	out.Root = hostPort(host, strconv.Itoa(portOf(out.Job)))
}

// orteHost is the first address of a URI like
// 22152.0;tcp://10.0.0.4,172.17.0.1:45021;tcp6://[fd00::2]:44495.
func orteHost(uri string) string {
	for part := range strings.SplitSeq(uri, ";") {
		if list, ok := strings.CutPrefix(part, "tcp://"); ok {
			hosts, _, _ := strings.Cut(list, ":")
			first, _, _ := strings.Cut(hosts, ",")
			return first
		}
	}
	return ""
}

// prrteHost is the host in a name like prterun-gpu-0-31337@1.
func prrteHost(space string) string {
	rest, ours := strings.CutPrefix(space, "prterun-")
	rest, _, numbered := strings.Cut(rest, "@")
	if i := strings.LastIndexByte(rest, '-'); ours && numbered && i > 0 {
		return rest[:i]
	}
	return ""
}

// pmiRoot serves MPICH, Intel MPI, Flux, which give each process a connection,
// and srun --mpi=pmi2, which uses another protocol but says more. Hydra says
// how many ranks are here, also where Slurm started it.
func pmiRoot(get lookup, out *Launch) {
	local := get.text("MPI_LOCALNRANKS")
	if get.text("SLURM_STEP_ID") != "" && local == "" {
		slurmRoot(get, out)
		return
	}
	out.Job = "PMI " + get.text("PMI_JOBID") + get.text("FLUX_JOB_ID")
	out.OneHost = local != "" && local == get.text("PMI_SIZE")
	if fd, err := strconv.Atoi(get.text("PMI_FD")); err == nil && fd > 0 {
		out.PMI = fd
	} else if out.OneHost {
		out.Root = hostPort("127.0.0.1", strconv.Itoa(portOf(out.Job)))
	}
}

func slurmRoot(get lookup, out *Launch) {
	list := get.text("SLURM_STEP_NODELIST")
	if list == "" {
		list = get.text("SLURM_NODELIST")
	}
	out.OneHost = get.text("SLURM_STEP_NUM_NODES") == "1"
	out.Job = "Slurm " + get.text("SLURM_JOB_ID") + "." + get.text("SLURM_STEP_ID")
	if host := firstHost(list); host != "" {
		out.Root = hostPort(host, strconv.Itoa(portOf(out.Job)))
	}
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

// hostPort joins host and port; IPv6 addresses get brackets.
func hostPort(host, port string) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + port
}
