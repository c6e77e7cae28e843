"""A training job under simccl intercept beside the same job without it, in pairs on one machine:
sets of processes that are all alive take turns, step by step the same jobs of train_modes.py.

  intercept-pairs.py SCRIPT OUT MODE,MODE... [SET=FOLDER ...]

A set R is bare: --time record, whose calls return at once. A set N runs without simccl, with NCCL
itself, which takes one rank a GPU: RANKS is at most the number of GPUs. Every other set is --time measured --data with the simccl
of its FOLDER (bin). RANKS (4) is how many processes a set has, each on processors that are its rank's in every set, LENGTH (80) for how many seconds rounds
go on. A mode with a dot is a variant of the script's (tp.batch2). A line a round and set has, for
each rank, the mean time of its host for a step and the median step between CUDA's events, in ms of
the program's clock. Then follow the means, each set's ratio to the first one, and for a step of a
rank: the machine's time and the processors', faults of pages, and how often its threads were left
and were taken off a processor. Bare ranks of several share the GPU, so they wait for it behind each
step, and have no step worth comparing. Run it at the root of the repository.
"""

import ctypes
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time

STEPS, SKIP = 12, 2
RANKS = int(os.environ.get("RANKS", "4"))


class Spec(ctypes.Structure):
    _fields_ = [("s", ctypes.c_long), ("ns", ctypes.c_long)]


def machine():
    """the machine's clock in ms: the C library's own, which is not the cluster's"""
    t = Spec()
    machine.libc.clock_gettime(1, ctypes.byref(t))
    return t.s * 1e3 + t.ns * 1e-6


machine.libc = ctypes.CDLL("libc.so.6")


def used():
    u = resource.getrusage(resource.RUSAGE_SELF)
    return [machine(), (u.ru_utime + u.ru_stime) * 1e3, u.ru_minflt, u.ru_nvcsw, u.ru_nivcsw]


def built(g, mode, rank):
    """the step of a mode, or of one of its variants"""
    name, _, part = mode.partition(".")
    steps = {}
    g["args"].mode, g["RESULT"] = name, {"mode": name, "rank": rank, "variants": {}}
    g["timed"] = lambda what, step, **k: steps.setdefault("", step)
    g["variant"] = lambda what, make, *a, **k: steps.setdefault(what, make()) if what == part else None
    g["MODES"][name]()
    return steps[part]


def turn_of(torch, step, bare):
    """STEPS steps: what the host and the GPU took for those behind the first SKIP"""
    events = [torch.cuda.Event(enable_timing=True) for _ in range(STEPS + 1)]
    host, before = [], None
    events[0].record()
    for i in range(STEPS):
        if i == SKIP:
            before = used()
        begun = time.perf_counter()
        step()
        host.append((time.perf_counter() - begun) * 1e3)
        events[i + 1].record()
        if bare:
            torch.cuda.synchronize()
    torch.cuda.synchronize()
    cost = [(b - a) / (STEPS - SKIP) for a, b in zip(before, used())]
    ms = [events[i].elapsed_time(events[i + 1]) for i in range(SKIP, STEPS)]
    return {"host": host[SKIP:], "step": ms, "cost": cost}


def worker(script, out, modes):
    import select

    name, rank, turns = os.environ["PAIRS_SET"], int(os.environ["RANK"]), os.environ["PAIRS"]
    sys.argv = [script, "--mode", modes[0].partition(".")[0], "--out", f"{out}/{name}", "--budget", "0"]
    with open(script) as f:
        body, call = f.read().rsplit("\nmain()", 1)
    assert not call.strip(), "the script's last line is no longer main()"
    g = {"__name__": "pairs", "__file__": script}
    exec(compile(body, script, "exec"), g)
    torch, dist, steps = g["torch"], g["dist"], {}
    for skipped in ("finish", "kineto"):
        g[skipped] = lambda *a, **k: None
    dist.init_process_group("nccl", device_id=g["DEV"])
    print("NCCL", torch.cuda.nccl.version(), flush=True)
    for mode in modes:
        steps[mode] = built(g, mode, rank)
        for _ in range(8):
            steps[mode]()
        torch.cuda.synchronize()

    def done(n, times):
        with open(f"{turns}/{name}.{n}.{rank}.part", "w") as f:
            json.dump(times, f)
        os.rename(f.name, f.name[: -len(".part")])

    done(0, {})
    last = 0
    while True:
        try:
            with open(f"{turns}/turn") as f:
                n, who, mode = f.read().split()
        except (FileNotFoundError, ValueError):
            n = 0
        if int(n) == last:
            select.select([], [], [], 0.005)
            continue
        last = int(n)
        if mode == "end":
            break
        if who == name:
            done(last, turn_of(torch, steps[mode], name == "R"))
    dist.barrier()
    os._exit(0)


def start(name, folder, port, args, out):
    env = dict(os.environ, PAIRS_SET=name, WORLD_SIZE=str(RANKS), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), LOCAL_RANK="0", OMP_NUM_THREADS="4", NCCL_NVLS_ENABLE="0")
    gpu = "CUDA_VISIBLE_DEVICES=$r " if name == "N" else ""  # NCCL itself takes one rank a GPU
    cores = max(1, min(8, os.cpu_count() // RANKS))  # of a rank, the same in each set: processors differ by a fifth
    pin = f"taskset -c $((r * {cores}))-$((r * {cores} + {cores - 1})) " if shutil.which("taskset") else ""
    ranks = f"for r in $(seq 0 {RANKS - 1}); do RANK=$r {gpu}{pin}" + " ".join([sys.executable, *args]) + " & done; wait"
    how = ["--time", "record"] if name == "R" else ["--time", "measured", "--data"]
    command = [f"{folder}/simccl", "intercept", "--topo", f"testdata/topos/h200x4-{max(RANKS, 2)}.xml", "--multicast", "off", "--devices", "real", *how, "--no-simulation", "--audit", "--timeout", "10m", "--"]
    with open(f"{out}/{name}.out", "w") as f:
        return subprocess.Popen(([] if name == "N" else command) + ["sh", "-c", ranks], env=env, stdout=f, stderr=f)


def compared(x, first):
    ratios = sorted(a / b for a, b in zip(x, first))
    return f"{statistics.mean(x):.2f} ms, {statistics.mean(x) / statistics.mean(first):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})"


def report(sums, first):
    print(f"mean of the rounds, of that of {first}, and in single rounds: host (mean of ranks), step (slowest rank's)")
    for (mode, name), rounds in sorted(sums.items()):
        hosts, steps = ([[r[what] for r in x] for x in (rounds, sums[mode, first])] for what in ("hosts", "steps"))
        cost = [statistics.mean(x) for x in zip(*(r["cost"] for r in rounds))]
        print(
            f"{mode} {name}: host {compared(*hosts)}; step {compared(*steps)}; {len(rounds)} rounds; a step: machine {cost[0]:.1f} ms, "
            f"processors {cost[1]:.1f} ms, faults {cost[2]:.1f}, left {cost[3]:.1f}, taken off {cost[4]:.1f}"
        )


def rounds(sets, modes, turns, out):
    def times(name, n, limit):
        files = [f"{turns}/{name}.{n}.{r}" for r in range(RANKS)]
        until = time.time() + limit
        while not all(map(os.path.exists, files)):
            if time.time() > until:
                sys.exit(f"set {name} did nothing for {limit} s: see {out}/{name}.out")
            time.sleep(0.005)
        return [json.load(open(f)) for f in files]

    for name in sets:
        times(name, 0, 150)
    begun, n, sums = time.time(), 0, {}
    while time.time() - begun < float(os.environ.get("LENGTH", "80")):
        for mode in modes:
            for name in sets:
                n += 1
                with open(f"{turns}/next", "w") as f:
                    f.write(f"{n} {name} {mode}")
                os.rename(f"{turns}/next", f"{turns}/turn")
                ranks = times(name, n, 60)
                hosts, steps = [statistics.mean(r["host"]) for r in ranks], [statistics.median(r["step"]) for r in ranks]
                cost = [statistics.mean(x) for x in zip(*(r["cost"] for r in ranks))]
                sums.setdefault((mode, name), []).append({"hosts": statistics.mean(hosts), "steps": max(steps), "cost": cost})
                print(mode, name, "host", *(f"{x:.1f}" for x in hosts), "step", *(f"{x:.2f}" for x in steps), flush=True)
    with open(f"{turns}/turn", "w") as f:
        f.write(f"{n + 1} - end")
    report(sums, next(iter(sets)))


def main():
    script, out, modes = sys.argv[1], sys.argv[2], sys.argv[3].split(",")
    if "PAIRS_SET" in os.environ:
        worker(script, out, modes)
    sets = dict(x.split("=") for x in sys.argv[4:]) or {"R": "bin", "M": "bin"}
    gpus = len(subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True).stdout.splitlines())
    if "N" in sets and RANKS > gpus:
        sys.exit(f"set N is NCCL itself, which takes one rank a GPU: RANKS is at most {gpus} here")
    turns = os.environ["PAIRS"] = f"{out}/turns"
    os.makedirs(turns, exist_ok=True)
    jobs = [start(name, folder, 29600 + i, sys.argv[:4], out) for i, (name, folder) in enumerate(sets.items())]

    try:
        rounds(sets, modes, turns, out)
        for job in jobs:
            job.wait(20)
    except subprocess.TimeoutExpired:
        pass
    finally:
        for job in jobs:
            job.terminate()


main()
