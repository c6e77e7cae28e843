package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/process"
	"github.com/simccl/simccl/dev/golden"
)

// drawn are the variables that TestRandomSettings sets, with values that are
// usual, at an edge, and nonsense.
var drawn = map[string]string{
	"NCCL_ALGO": "Ring Tree NVLS NVLSTree PAT CollNetDirect ^Ring " +
		"allreduce:tree;allgather:ring Nothing",
	"NCCL_PROTO":                     "LL LL128 Simple ^LL LL,Simple Nothing",
	"NCCL_P2P_LEVEL":                 "LOC NVL PIX PXB PHB SYS 0 3 9 nonsense",
	"NCCL_P2P_DISABLE":               "0 1 2 -1",
	"NCCL_P2P_USE_CUDA_MEMCPY":       "0 1",
	"NCCL_SHM_DISABLE":               "0 1 7",
	"NCCL_NET_DISABLE_INTRA":         "0 1",
	"NCCL_NVB_DISABLE":               "0 1",
	"NCCL_PXN_DISABLE":               "0 1 2",
	"NCCL_PXN_C2C":                   "0 1",
	"NCCL_P2P_PXN_LEVEL":             "0 1 2 3 -1",
	"NCCL_NET_GDR_LEVEL":             "LOC PIX PXB PHB SYS 0 5",
	"NCCL_NET_GDR_READ":              "0 1 -2 2",
	"NCCL_NET_GDR_C2C":               "0 1",
	"NCCL_NET_FORCE_FLUSH":           "0 1",
	"NCCL_NETDEVS_POLICY":            "AUTO ALL MAX:1 MAX:2 MAX:0 nonsense",
	"NCCL_NET_MERGE_LEVEL":           "LOC PORT PIX PXB PHB SYS nonsense",
	"NCCL_NET_FORCE_MERGE":           "mlx5_0,mlx5_1 mlx5_0 mlx5_0,mlx5_99 ;",
	"NCCL_IB_MERGE_NICS":             "0 1",
	"NCCL_IB_HCA":                    "mlx5_0 ^mlx5_0 =mlx5_1 mlx5_0:1 nosuch ^",
	"NCCL_IB_DISABLE":                "0 1",
	"NCCL_NET":                       "IB Socket nonsense",
	"NCCL_SOCKET_IFNAME":             "eth0 ^eth0 =lo nosuch",
	"NCCL_SOCKET_NTHREADS":           "0 1 4 17 -3",
	"NCCL_NSOCKS_PERTHREAD":          "0 1 8 65 -3",
	"NCCL_SOCKET_MIN_TASKSIZE":       "1 65536 -1 0",
	"NCCL_IB_QPS_PER_CONNECTION":     "1 4 128 1000 0 -1",
	"NCCL_IB_SPLIT_DATA_ON_QPS":      "0 1",
	"NCCL_IB_TIMEOUT":                "14 20 0 40 -1",
	"NCCL_IB_RETRY_CNT":              "0 7 9 -1",
	"NCCL_MNNVL_ENABLE":              "0 1 2",
	"NCCL_CUMEM_ENABLE":              "0 1 -2",
	"NCCL_MNNVL_RAIL_PER_HOST":       "0 1",
	"NCCL_MNNVL_SCATTER_NETS_ENABLE": "0 1",
	"NCCL_CROSS_NIC":                 "0 1 2 3 -1",
	"NCCL_MIN_NRINGS":                "1 8 0 -3 100",
	"NCCL_MAX_NRINGS":                "1 8 0 -3 100",
	"NCCL_MIN_NCHANNELS":             "1 8 32 64 65 0 -3",
	"NCCL_MAX_NCHANNELS":             "1 8 32 64 65 0 -3",
	"NCCL_MIN_CTAS":                  "1 8 64 65 0 -3",
	"NCCL_MAX_CTAS":                  "1 8 64 65 0 -3",
	"NCCL_COLLNET_ENABLE":            "0 1",
	"SIMCCL_COLLNET":                 "0 1",
	"NCCL_COLLNET_NODE_THRESHOLD":    "0 1 2 99 -1",
	"NCCL_NVLS_ENABLE":               "0 1 2",
	"NCCL_NVLS_NCHANNELS":            "1 8 16 32 64 99 0 -3",
	"NCCL_NVLS_CHUNKSIZE":            "0 511 512 32768 131072 1048576 -1 99999999999",
	"NCCL_NVLSTREE_MAX_CHUNKSIZE":    "0 512 65536 -2 -1",
	"NCCL_MIN_P2P_NCHANNELS":         "1 4 64 65 0 -1",
	"NCCL_MAX_P2P_NCHANNELS":         "1 4 64 65 0 -1",
	"NCCL_NCHANNELS_PER_NET_PEER":    "1 4 64 65 0 -1",
	"NCCL_P2P_SCHEDULE_GROUP_SIZE":   "1 3 8 16 0 -1",
	"NCCL_WORK_ARGS_BYTES":           "0 1 128 4096 32768 -1 99999999999",
	"NCCL_PAT_ENABLE":                "0 1 2",
	"NCCL_NET_OVERHEAD":              "0 1 5000 -1 -2 99999999999",
	"NCCL_LL128_C2C":                 "0 1",
	"NCCL_NTHREADS":                  "64 256 512 1024 100 0 -1",
	"NCCL_LL128_NTHREADS":            "64 640 1024 100 0 -1",
	"NCCL_THREAD_THRESHOLDS":         "16,16,128 8 nonsense -1,-1,-1,-1,-1,-1 0,0,0,0,0,0",
	"NCCL_BUFFSIZE":                  "1 -5 4095 4096 32768 1048576 8388608 12345678 99999999999",
	"NCCL_LL_BUFFSIZE":               "16 255 256 4096 524288 1000001 -1",
	"NCCL_LL128_BUFFSIZE":            "16 16383 16384 4915200 1000001 -1",
	"NCCL_CHUNK_SIZE":                "0 1 2 4096 131072 1048576 -1",
	"NCCL_P2P_NET_CHUNKSIZE":         "1 4096 131072 1048576 0 -1 99999999999",
	"NCCL_P2P_PCI_CHUNKSIZE":         "1 4096 131072 1048576 0 -1",
	"NCCL_P2P_NVL_CHUNKSIZE":         "1 4096 131072 1048576 0 -1",
	"NCCL_P2P_LL_THRESHOLD":          "0 1 16384 1048576 -1",
	"NCCL_ALLOC_P2P_NET_LL_BUFFERS":  "0 1",
	"NCCL_NET_SHARED_BUFFERS":        "0 1 -2",
	"NCCL_GRAPH_FILE":                "nosuch.xml",
}

// drawRun makes a random command line.
func drawRun(rng *rand.Rand, machines, names []string) []string {
	one := func(list string) string { f := strings.Fields(list); return f[rng.IntN(len(f))] }
	pick := func(list []string) string { return list[rng.IntN(len(list))] }
	topo := pick(machines)
	args := []string{
		"run", one("all_reduce all_gather reduce_scatter broadcast reduce sendrecv alltoall gather scatter"),
		"--no-env",
		"--sizes", one("8 1000 4K 64K,1M"), "-c", one("0 1"), "-d", one("float float bfloat16 int8")}
	switch rng.IntN(4) {
	case 0:
		topo += fmt.Sprintf(":%d,%s:%d", 1+rng.IntN(2), pick(machines), 1+rng.IntN(2))
	case 1:
		k := 2 + rng.IntN(2)
		args = append(args, "--mnnvl", fmt.Sprint(k), "--nodes", fmt.Sprint(k*(1+rng.IntN(2))))
	default:
		args = append(args, "--nodes", fmt.Sprint(1+rng.IntN(3)))
	}
	args = append(args, "--topo", topo)
	if rng.IntN(3) == 0 {
		args = append(args, "-g", fmt.Sprint(1+rng.IntN(4)))
	}
	if rng.IntN(3) == 0 {
		args = append(args, "--multicast", one("on off"))
	}
	for range rng.IntN(5) {
		name := pick(names)
		args = append(args, "--env", name+"="+one(drawn[name]))
	}
	return args
}

// TestRandomSettings: whatever machine, operation and settings are asked for, a
// run ends with a right result or with an error that names its cause, never with
// an internal one, wrong values or a hang.
func TestRandomSettings(t *testing.T) {
	machines, err := filepath.Glob(filepath.Join(golden.Root(t, "testdata", "topos"), "*.xml"))
	if err != nil || len(machines) == 0 {
		t.Fatalf("no machines: %v", err)
	}
	names := make([]string, 0, len(drawn))
	for n := range drawn {
		names = append(names, n)
	}
	slices.Sort(names)
	cases := 400
	if testing.Short() {
		cases = 60
	}
	ends := map[int]int{}
	for i := range cases {
		args := drawRun(rand.New(rand.NewPCG(uint64(i), 14)), machines, names)
		var out, errs bytes.Buffer
		code := run(context.Background(), args, appOf(process.Process{Out: &out, Err: &errs}))
		ends[code]++
		fine := code == cli.StatusOK || code == cli.StatusNotImplemented || code == cli.StatusUsage ||
			code == cli.StatusInput
		if !fine || strings.Contains(errs.String(), "defect of simccl") {
			t.Errorf("case %d: simccl %s\nexit status %d: %s", i, strings.Join(args, " "), code,
				errs.String())
		}
	}
	if ends[cli.StatusOK] < cases/4 || ends[cli.StatusUsage] == 0 {
		t.Errorf("exit statuses %v: too few runs that end well, or none that is refused", ends)
	}
	t.Logf("exit statuses %v", ends)
}

// TestDomainsWithoutNets: an NVLink domain over several hosts whose GPUs NVLink
// does not join, and whose NICs are taken away, is refused with the reason.
func TestDomainsWithoutNets(t *testing.T) {
	root := golden.Root(t, "testdata", "topos")
	for _, machine := range []string{"pcie-l40s-8", "hgx-a100-4", "pcie-a100-4", "gb200-nvl72-tray"} {
		for _, op := range []string{"sendrecv", "gather", "reduce", "all_reduce"} {
			for _, off := range []string{"0", "1"} {
				args := []string{"run", op, "--no-env", "--topo", filepath.Join(root, machine+".xml"),
					"--nodes", "3", "--mnnvl", "3", "--sizes", "8", "-c", "0", "--env", "NCCL_IB_DISABLE=" +
						off}
				var out, errs bytes.Buffer
				code := run(t.Context(), args, appOf(process.Process{Out: &out, Err: &errs}))
				want := cli.StatusOK
				if off == "1" && machine != "gb200-nvl72-tray" {
					want = cli.StatusInput
				}
				if code != want || want == cli.StatusInput && !strings.Contains(errs.String(), "has no NIC") {
					t.Errorf("%s: exit status %d, want %d: %s", strings.Join(args, " "), code, want,
						errs.String())
				}
			}
		}
	}
}
