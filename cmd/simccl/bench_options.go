package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// check refuses what the backend cannot do, before anything is opened.
func (b *benchFlags) check(a *app, cmd *cobra.Command) error {
	if !b.onGPUs() {
		return b.checkHost(cmd)
	}
	if err := b.checkGPUs(); err != nil {
		return err
	}
	if text, ok := a.getenv("NCCL_TESTS_DEVICE"); ok && text != "" {
		return notYet("NCCL_TESTS_DEVICE="+text, "a first GPU other than the first; CUDA_VISIBLE_DEVICES chooses GPUs")
	}
	return b.checkModes()
}

func (b *benchFlags) replays() int {
	if b.timing == "graph" {
		return max(b.run.test.graph, 1)
	}
	return b.run.test.graph
}

// checkHost refuses values that mean nothing where CPUs run the operation, and
// fills the sizes of a run without any: a CPU moves less than a GPU.
func (b *benchFlags) checkHost(cmd *cobra.Command) error {
	if !b.run.test.sized(cmd) {
		for _, kv := range [][2]string{{"min-bytes", "8"}, {"max-bytes", "16M"}, {"step-factor", "8"}} {
			if err := cmd.Flags().Set(kv[0], kv[1]); err != nil {
				return err
			}
		}
	}
	switch b.backend {
	case "host", "sockets", "verbs":
	default:
		return usage("--backend %s: write nccl, cuda, host, sockets or verbs", b.backend)
	}
	if b.run.machine.multicast == "on" {
		return usage("--multicast on: a CPU has no NVLink multicast")
	}
	if err := b.onlyGPUs(); err != nil {
		return err
	}
	if err := b.checkBoth(); err != nil {
		return err
	}
	b.run.machine.multicast = "off"
	b.run.launch, b.run.out.style = "eager", "lanes"
	return b.run.check()
}

// onlyGPUs refuses what a CPU backend would have to pass over in silence.
func (b *benchFlags) onlyGPUs() error {
	t := &b.run.test
	for _, o := range []struct {
		said       bool
		flag, have string
	}{
		{t.threads != 1, fmt.Sprintf("-t %d", t.threads), "its ranks are --nranks, or --nodes times -g"},
		{b.timing != "eager", "--launch " + b.timing, "it has no graphs"},
		{t.graph != 0, fmt.Sprintf("-G %d", t.graph), "it has no graphs"},
		{b.compare, "--compare", "nothing is known of CPUs to compare with"},
		{b.algo != "auto", "--algo " + b.algo, "it runs the plan; NCCL_ALGO and NCCL_PROTO choose which"},
		{b.libnccl != "", "--libnccl", "it does not load NCCL"},
		{t.perIter != 0 || t.skip != 0, "-I, -K", "it times all iterations together"},
		{t.blocking != 0 || t.cpuTime != 0 || t.streamNull != 0, "-z, -C, -y", "it has no streams"},
		{t.agg != 1, fmt.Sprintf("-m %d", t.agg), "it does not group operations"},
		{t.localRegister != 0 || t.ctaPolicy != noPolicy, "-R, -x", "it does not load NCCL"},
		{t.unalign != 0 || t.memory != 0, "-u, -M", "its buffers are its own"},
	} {
		if o.said {
			return usage("%s: for GPUs (--backend nccl or cuda) alone; of --backend %s: %s", o.flag, b.backend, o.have)
		}
	}
	return nil
}

// checkBoth refuses values that mean nothing to any backend.
func (b *benchFlags) checkBoth() error {
	t := &b.run.test
	switch {
	case t.average < 0 || t.average > 3:
		return usage("-a %d: 0 rank 0, 1 average, 2 minimum, 3 maximum", t.average)
	case t.timeout < 0:
		return usage("-T %d: seconds from 0, which is no limit", t.timeout)
	case b.limit <= 0:
		return usage("--limit %v: more than nothing, like 30s or 5m", b.limit)
	case b.place.nranks < 0:
		return usage("--nranks %d: must be at least 1", b.place.nranks)
	case t.device != 0:
		return notYet(fmt.Sprintf("-D %d", t.device), "kernels of NCCL's device API; -D 0 runs its collectives")
	}
	return directory("-J", t.output)
}

// most is how long a size may take.
func (b *benchFlags) most() time.Duration {
	if t := time.Duration(b.run.test.timeout) * time.Second; t > 0 {
		return min(b.limit, t)
	}
	return b.limit
}

// checkGPUs refuses values that mean nothing before any device is opened.
func (b *benchFlags) checkGPUs() error {
	t, trace := &b.run.test, b.run.out.trace
	switch {
	case b.timing != "eager" && b.timing != "graph":
		return usage("--launch %s: write eager or graph", b.timing)
	case t.iters < 1 || t.agg < 1 || t.cycles < 1 || t.warmup < 0 || t.graph < 0 || t.check < 0:
		return usage("-n, -m and -N begin at 1; -w, -G and -c at 0")
	case t.perIter < 0 || t.perIter > 1:
		return usage("-I %d: 0 or 1", t.perIter)
	case t.perIter != 0 && (t.graph > 0 || b.timing == "graph"):
		return usage("-I %d: a graph replay has no times of single iterations; use eager launches", t.perIter)
	case t.skip < 0 || t.skip >= t.iters:
		return usage("-K %d: less than the %d iterations of -n", t.skip, t.iters)
	case trace != "" && !strings.HasSuffix(trace, ".json") && !strings.HasSuffix(trace, ".json.gz"):
		return usage("--trace %s: the name must end in .json or .json.gz", trace)
	}
	if err := directory("--trace", trace); err != nil {
		return err
	}
	return b.checkBoth()
}

// checkModes refuses launch modes that exclude each other.
func (b *benchFlags) checkModes() error {
	t := &b.run.test
	switch {
	case t.blocking < 0 || t.blocking > 3 || t.cpuTime < 0 || t.cpuTime > 1 || t.localRegister < 0 || t.localRegister > 2 ||
		t.ctaPolicy < noPolicy || t.ctaPolicy > 2 || t.unalign < 0:
		return usage("-z is 0 to 3, -C 0 or 1, -R 0 to 2, -x 0 to 2, -u at least 0")
	case (t.blocking != 0 || t.cpuTime != 0) && b.replays() > 0:
		return usage("-z %d -C %d: a graph replay neither blocks nor is launched one by one; use eager launches", t.blocking, t.cpuTime)
	case t.streamNull != 0:
		return notYet("-y 1", "the default stream: every rank has one of its own")
	case b.backend != "nccl" && (t.localRegister != 0 || t.ctaPolicy != noPolicy || t.unalign != 0):
		return usage("-R, -x, -u: for --backend nccl alone")
	}
	return nil
}
