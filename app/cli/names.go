package cli

import (
	"cmp"
	"errors"
	"regexp"
	"strings"
	"sync"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/scenario"
)

// Rules is the release whose rules hold where no machine says another.
func Rules() rules.Release { return rules.Default().Release }

// FlagNames are the options that set the members of a Spec and of a bench; those without one
// have values that name themselves.
var FlagNames = map[string]string{
	"machine.split": "NCCL_TESTS_SPLIT", "machine.nodes": "--nodes", "machine.gpus": "-g",
	"machine.multicast": "--multicast", "machine.nvlinkDomain": "--mnnvl",
	"machine.class": "--machine-class", "nccl.env": "--env", "nccl.version": "--nccl-version",
	"network.fabric": "--fabric", "network.class": "--network-class", "network.faults": "--fault",
	"network.model": "--network", "network.cc": "--cc", "network.balance": "--balance", "workload.op": "",
	"workload.types":      "",
	"workload.reductions": "", "workload.sizes": "--sizes", "workload.counts": "--counts",
	"workload.imbalance": "--imbalance", "workload.range": "", "workload.range.min": "-b",
	"workload.range.max":  "-e",
	"workload.range.step": "-i", "workload.range.factor": "-f", "workload.root": "-r",
	"workload.cycles": "-N", "workload.group": "-m", "workload.buffers": "-R", "workload.ctaPolicy": "-x",
	"workload.unalign": "-u", "workload.device": "-D", "workload.deviceBlocks": "-V", "engine.blocking": "-z",
	"engine.cpuTime": "-C", "engine.fidelity": "--fidelity",
	"engine.fold": "--fold", "engine.skip": "--skip", "engine.jitter": "--jitter",
	"engine.launch": "--launch", "engine.processes": "--procs", "engine.threads": "-t",
	"outputs.trace":   "--trace",
	"outputs.profile": "--profile", "outputs.ops": "--ops", "outputs.detail": "--trace-detail",
	"outputs.style": "--trace-style",
	"outputs.ranks": "--trace-ranks", "outputs.maxEvents": "--trace-events",
	"Topo": "--topo", "Nodes": "--nodes", "Root": "-r",
	// Members of a bench.Request.
	"Iters": "-n", "Warmup": "-w", "Agg": "-m", "Cycles": "-N", "Check": "-c", "Graph": "-G", "Output": "-J",
	"Columns": "--columns",
	"Threads": "-t", "Blocking": "-z", "StreamNull": "-y", "Timeout": "-T", "CPUTime": "-C", "Average": "-a",
	"LocalRegister": "-R", "CTAPolicy": "-x",
	"Memory": "-M", "Unalign": "-u", "Device": "-D", "PerIter": "-I", "Skip": "-K", "Backend": "--backend",
	"Launch": "--launch", "Algo": "--algo", "Shares": "--shares", "CountsFile": "--counts",
	"Imbalance": "--imbalance",
	"Library":   "--libnccl", "Multicast": "--multicast", "Compare": "--compare", "Trace": "--trace",
	"Limit": "--limit", "Ranks": "--nranks",
	// Members of a perftest.Request, where they are not called so above.
	"QPs": "-q", "Seconds": "-D", "Depth": "-t", "SL": "-S", "TrafficClass": "--tclass", "QPTimeout": "-u",
	"TCP": "-p", "Serve": "--serve", "Listen": "--listen", "Size": "-s",
	// Members of netrun's options.
	"Compat": "--compat", "CC": "--cc", "Repair": "--repair", "RepairTimeout": "--timeout",
	"Retries": "--retries", "Paths": "--paths", "Credits": "--credits", "Fault": "--fault",
	"Routing": "--routing", "Flowlet": "--flowlet", "Watchdog": "--watchdog", "MarkAt": "--mark-at",
	"PauseQuanta": "--pause-quanta", "Alpha": "--alpha", "CNP": "--cnp", "CutThrough": "--cut-through",
	"MessageRate": "--message-rate",
	"Balance":     "--lb", "MTU": "--mtu",
}

// AsFlags names options in place of the members of a Spec, whose error is one of
// usage, and of a bench.Request.
func AsFlags(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range joined.Unwrap() {
			all = append(all, AsFlags(e))
		}
		return fail.Join(all...)
	}
	var f *scenario.FieldError
	if !errors.As(err, &f) {
		return fail.Named(err, FlagNames)
	}
	path, _, _ := strings.Cut(f.Path, "[")
	flag, known := FlagNames[path]
	if !known {
		return fail.Argument(err)
	}
	own := *f
	own.Hint = asFlags(own.Hint)
	if own.Path = flag; flag == "" {
		own.Path, own.Value = "", ""
		return fail.Usage("%s", strings.TrimPrefix(own.Error(), ": "))
	}
	return fail.Argument(&own)
}

var memberIn = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b[a-z]+\.[a-zA-Z.]*[a-zA-Z]\b`)
})

// asFlags writes the options for members of a scenario that a hint names.
func asFlags(hint string) string {
	return memberIn().ReplaceAllStringFunc(hint, func(member string) string {
		return cmp.Or(FlagNames[member], member)
	})
}
