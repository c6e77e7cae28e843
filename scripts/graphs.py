#!/usr/bin/env python3
"""Graphs of many collectives, and profiles of collectives beside compute (testdata/measured/h200x2/graphs.txt, docs/results/OVERLAP.md).

  torchrun --nproc-per-node 2 scripts/graphs.py OUT SECONDS

Writes OUT/graphs.txt, and the kernels' times of each profile to OUT/traces_rank<r>.json.gz.
"""
import ctypes, gc, gzip, json, os, sys, time, traceback
os.environ["NCCL_NVLS_ENABLE"] = "0"
RANK, LOCAL, WORLD = (int(os.environ.get(k, d)) for k, d in (("RANK", 0), ("LOCAL_RANK", 0), ("WORLD_SIZE", 1)))
OUT = sys.argv[1]; BUDGET = float(sys.argv[2])
T0 = time.time()
import torch, torch.distributed as dist
from datetime import timedelta
DEV = torch.device("cuda", LOCAL); torch.cuda.set_device(DEV)
BF = torch.bfloat16; KiB, MiB = 1 << 10, 1 << 20
dist.init_process_group("nccl", timeout=timedelta(seconds=45))
ONE = torch.ones(1, device=DEV); dist.all_reduce(ONE); torch.cuda.synchronize()
F = open(os.path.join(OUT, "graphs.txt"), "w") if RANK == 0 else None
def say(*a):
    if RANK == 0:
        s = " ".join(str(x) for x in a); print(s, flush=True); F.write(s + "\n"); F.flush()
def gather(v):
    t = torch.tensor(v, device=DEV, dtype=torch.float64)
    o = torch.empty(WORLD * t.numel(), device=DEV, dtype=torch.float64)
    dist.all_gather_into_tensor(o, t); return o.view(WORLD, -1).tolist()
def late(): return max(x[0] for x in gather([time.time() - T0])) > BUDGET
def med(v): v = sorted(v); return v[len(v) // 2]
CYC = 1.98e9
def gate(ms): torch.cuda._sleep(int(ms * 1e-3 * CYC)); dist.all_reduce(ONE)
BUF = torch.empty(768 * MiB, device=DEV, dtype=torch.uint8); BUF2 = torch.empty(768 * MiB, device=DEV, dtype=torch.uint8)
rt = None
for line in open("/proc/self/maps"):
    if "libcudart" in line: rt = ctypes.CDLL(line.split()[-1]); break
def nodes(g):
    h = g.raw_cuda_graph(); n = ctypes.c_size_t(0)
    rt.cudaGraphGetNodes(ctypes.c_void_p(h), None, ctypes.byref(n))
    a = (ctypes.c_void_p * n.value)(); rt.cudaGraphGetNodes(ctypes.c_void_p(h), a, ctypes.byref(n))
    k = {}
    for x in a:
        t = ctypes.c_int(0); rt.cudaGraphNodeGetType(ctypes.c_void_p(x), ctypes.byref(t)); k[t.value] = k.get(t.value, 0) + 1
    return n.value, k
S1 = torch.cuda.Stream(); S2 = torch.cuda.Stream(); HIGH = torch.cuda.Stream(priority=-1)
def one(op, nb, i, pg=None):
    a, b = BUF[i * nb:(i + 1) * nb].view(BF), BUF2[i * nb:(i + 1) * nb].view(BF); e = nb // 2
    if op == "all_reduce": dist.all_reduce(a, group=pg)
    elif op == "all_gather": dist.all_gather_into_tensor(a, b[:e // WORLD], group=pg)
    elif op == "alltoall": dist.all_to_all_single(a, b, group=pg)
    else: dist.reduce_scatter_tensor(b[:e // WORLD], a, group=pg)
def capture(fn, keep=False):
    with torch.cuda.stream(S1): fn()
    torch.cuda.synchronize()
    g = torch.cuda.CUDAGraph(keep_graph=True) if keep else torch.cuda.CUDAGraph()
    with torch.cuda.graph(g, capture_error_mode="thread_local"):
        cur = torch.cuda.current_stream(); S1.wait_stream(cur)
        with torch.cuda.stream(S1): fn()
        cur.wait_stream(S1)
    return g
def replay(g, k, ms, sync=True):
    ts, hs, firsts = [], [], []
    for r in range(3):
        torch.cuda.synchronize()
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        gate(ms) if sync else torch.cuda._sleep(int(ms * 1e-3 * CYC)); a.record()
        h = time.perf_counter(); one_h = []
        for _ in range(k):
            q = time.perf_counter(); g.replay(); one_h.append(time.perf_counter() - q)
        hs.append((time.perf_counter() - h) / k * 1e6); firsts.append(one_h[0] * 1e6)
        b.record(); torch.cuda.synchronize(); ts.append(a.elapsed_time(b) / k * 1e3)
    return med(ts), med(hs), med(firsts)
def sec_graph():
    say("## graphs: us of one graph of n operations: ten2 = ten replays behind a gate of 2 ms, host = host's time of a replay, first = of the first, one = one replay behind a long gate, long = ten behind a long gate; same: all in one buffer")
    say(f"{'op':14s} {'bytes':>9s} {'n':>4s} {'ten2':>9s} {'host':>8s} {'first':>8s} {'one':>9s} {'long':>9s} {'same_long':>9s} {'same_ten2':>9s} nodes")
    for op, sizes, ns in (("all_reduce", (4 * KiB, 64 * KiB, MiB, 16 * MiB), (1, 2, 4, 8, 16, 32, 64, 128)), ("all_gather", (64 * KiB, MiB, 16 * MiB), (2, 8, 32))):
        for nb in sizes:
            for n in ns:
                if nb * n > 512 * MiB or late(): continue
                g = capture(lambda: [one(op, nb, i) for i in range(n)], True)
                k = nodes(g); g.instantiate()
                t2, h, f = replay(g, 10, 2); t1, _, _ = replay(g, 1, 2 + n * 0.03)
                hh = max(x[0] for x in gather([h]))
                tl, _, _ = replay(g, 10, 2 + 12 * hh / 1e3)
                del g
                g = capture(lambda: [one(op, nb, 0) for i in range(n)], False)
                sl, _, _ = replay(g, 10, 2 + 12 * hh / 1e3); s2, _, _ = replay(g, 10, 2)
                del g
                v = gather([t2, h, f, t1, tl, sl, s2])
                m = [max(r[i] for r in v) for i in range(7)]
                say(f"{op:14s} {nb:9d} {n:4d} " + " ".join(f"{x:9.2f}" for x in m), k)
    x = torch.zeros(1024, device=DEV)
    for n in (1, 8, 32, 128):
        g = capture(lambda: [x.add_(1) for i in range(n)], True); k = nodes(g); g.instantiate()
        v = [*replay(g, 10, 2, False)[:2], replay(g, 1, 3, False)[0]]
        say(f"{'add of 4 KiB':14s} {4096:9d} {n:4d} ten2 {v[0]:.2f} host {v[1]:.2f} one {v[2]:.2f}", k)
from torch.profiler import profile, ProfilerActivity
TR = {}
def traced(name, fn):
    torch.cuda.synchronize(); dist.barrier(); torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as p:
        fn(); torch.cuda.synchronize()
    path = f"/tmp/tr{RANK}.json"; p.export_chrome_trace(path)
    ev = json.load(open(path))["traceEvents"]; ks = []
    for e in ev:
        if e.get("ph") != "X": continue
        a = e.get("args", {})
        if e.get("cat") == "kernel":
            ks.append([e["name"][:60], a.get("stream"), round(e["ts"], 3), round(e["dur"], 3), a.get("grid"), a.get("block"), a.get("est. achieved occupancy %"), a.get("blocks per SM"), a.get("shared memory"), a.get("registers per thread")])
        elif "Graph" in e["name"] and e.get("cat", "").startswith("cuda"): ks.append([e["name"], -1, round(e["ts"], 3), round(e["dur"], 3)])
    ks.sort(key=lambda e: e[2]); t = ks[0][2] if ks else 0
    for e in ks: e[2] = round(e[2] - t, 3)
    TR[name] = ks
def sec_gtrace():
    for op, nb, n in (("all_reduce", 4 * KiB, 64), ("all_reduce", MiB, 64), ("all_reduce", 16 * MiB, 16)):
        if late(): return
        g = capture(lambda: [one(op, nb, i) for i in range(n)])
        def f():
            gate(3)
            for _ in range(3): g.replay()
        f(); torch.cuda.synchronize(); traced(f"graph {op} {nb} {n}", f); del g
KINDS = {}
def kinds():
    for n in (2048, 4096, 8192):
        a = torch.randn(n, n, device=DEV, dtype=BF); b = torch.randn(n, n, device=DEV, dtype=BF); c = torch.empty(n, n, device=DEV, dtype=BF)
        KINDS[f"gemm{n}"] = (lambda a=a, b=b, c=c: torch.mm(a, b, out=c))
    x = torch.randn(64 * MiB, device=DEV, dtype=BF); y = torch.empty_like(x)
    KINDS["add128M"] = lambda: torch.add(x, 1.0, out=y)
    q = torch.randn(4, 16, 2048, 128, device=DEV, dtype=BF)
    KINDS["sdpa"] = lambda: torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)
def mk(ctas=None, high=False, cga=None):
    o = dist.ProcessGroupNCCL.Options()
    if high: o.is_high_priority_stream = True
    if ctas: o.config.min_ctas = ctas; o.config.max_ctas = ctas
    if cga is not None: o.config.cga_cluster_size = cga
    g = dist.new_group(list(range(WORLD)), backend="nccl", pg_options=o); dist.all_reduce(ONE, group=g); torch.cuda.synchronize(); return g
TAU = dict(gemm2048=24.56, gemm4096=174.78, gemm8192=1483.23, add128M=66.33, sdpa=144.83)
def sec_beside():
    kinds(); P = {"def": mk(), "ch1": mk(1), "ch4": mk(4), "ch16": mk(16), "high": mk(high=True), "cga0": mk(cga=0)}
    rows = []
    for kind in ("gemm8192", "gemm4096", "add128M", "gemm2048", "sdpa"):
        rows += [("all_reduce", 16 * MiB, "def", 12, kind), ("all_reduce", 256 * MiB, "def", 3, kind)]
    rows += [("all_reduce", 256 * MiB, "ch16", 3, k) for k in ("gemm8192", "gemm4096", "add128M")]
    rows += [("all_reduce", 16 * MiB, "ch1", 6, k) for k in ("gemm8192", "gemm4096", "add128M")]
    rows += [("all_reduce", 256 * MiB, "ch4", 2, k) for k in ("gemm8192", "gemm4096", "add128M")]
    rows += [("all_reduce", 16 * MiB, g, 12, k) for g in ("high", "cga0") for k in ("gemm8192", "gemm4096")]
    rows += [("alltoall", 16 * MiB, "def", 12, k) for k in ("gemm8192", "gemm4096", "add128M")]
    rows += [("alltoall", 256 * MiB, "def", 3, k) for k in ("gemm8192", "gemm4096", "add128M")]
    rows += [("all_reduce", MiB, "def", 40, k) for k in ("gemm2048", "gemm4096", "add128M")]
    for op, nb, pg, n, kind in rows:
        if late(): return
        s = HIGH if pg == "high" else S1
        def f(only=None, K=0):
            gate(5); g = torch.cuda.Event(); g.record()
            for st, fn, k, w in ((s, lambda: one(op, nb, 0, P[pg]), n, "comm"), (S2, KINDS[kind], K, "comp")):
                if only and only != w: continue
                st.wait_event(g)
                with torch.cuda.stream(st):
                    for _ in range(k): fn()
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        f("comm"); torch.cuda.synchronize(); gate(4)
        with torch.cuda.stream(s):
            s.wait_stream(torch.cuda.current_stream()); a.record(s)
            for _ in range(n): one(op, nb, 0, P[pg])
            b.record(s)
        torch.cuda.synchronize(); tc = max(x[0] for x in gather([a.elapsed_time(b) * 1e3]))
        K = min(200, max(4, int(2.2 * tc / TAU[kind] + 2)))
        f(None, K); torch.cuda.synchronize()
        traced(f"beside {op} {nb} {pg} {n} {kind} {K} alone_us {tc:.1f}", lambda: f(None, K))
for name, fn in (("graph", sec_graph), ("gtrace", sec_gtrace), ("beside", sec_beside)):
    t = time.time()
    try: fn()
    except Exception: print(f"[rank {RANK}] {name}\n{traceback.format_exc()}", flush=True)
    say(f"# {name}: {time.time() - t:.1f} s")
with gzip.open(os.path.join(OUT, f"traces_rank{RANK}.json.gz"), "wt") as f: json.dump(TR, f)
sys.stdout.flush(); torch.cuda.synchronize(); os._exit(0)
