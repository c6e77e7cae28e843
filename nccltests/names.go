package nccltests

// LongName is simccl's option for a long option of nccl-tests, with underscores.
func LongName(option string) (name string, known bool) {
	name, known = longNames[option]
	return name, known
}

var longNames = map[string]string{
	"nthreads": "nthreads", "ngpus": "gpus", "minbytes": "min-bytes", "maxbytes": "max-bytes",
	"stepbytes":  "step-bytes",
	"stepfactor": "step-factor", "iters": "iters", "agg_iters": "agg-iters", "warmup_iters": "warmup-iters",
	"run_cycles":    "run-cycles",
	"parallel_init": "parallel-init", "check": "check", "op": "op", "datatype": "datatype", "root": "root",
	"blocking":    "blocking",
	"stream_null": "stream-null", "timeout": "timeout", "cudagraph": "cudagraph",
	"report_cputime":    "report-cputime",
	"report_timestamps": "report-timestamps", "output_file": "output-file", "average": "average",
	"local_register": "local-register",
	"cta_policy":     "cta-policy", "unalign": "unalign", "memory": "memory",
	"device_implementation": "device-implementation",
	"device_cta_count":      "device-cta-count", "per_iter_timing": "per-iter-timing",
	"per_iter_skip": "per-iter-skip",
}
