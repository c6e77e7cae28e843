"""What simccl intercept costs the host of a training job, in pairs on one machine: sets of four
processes that are all alive take turns, step by step the same jobs of train_modes.py.

  intercept-pairs.py SCRIPT OUT MODE,MODE... [SET=FOLDER ...]

A set R is bare: --time record, whose calls return at once. Every other set is --time measured
--data with the simccl of its FOLDER (bin). SECONDS (80) is how long rounds go on. A line a round and set: each
rank's mean time of its host for a step, in ms; then the means, and each set's ratio to R. Bare ranks share the GPU,
so they wait for it behind each step. Run it at the root of the repository.
"""

import json
import os
import subprocess
import sys
import time

STEPS, SKIP = 12, 2


def worker(script, out, modes):
    import select

    name, rank, turns = os.environ["PAIRS_SET"], int(os.environ["RANK"]), os.environ["PAIRS"]
    sys.argv = [script, "--mode", modes[0], "--out", f"{out}/{name}", "--budget", "0"]
    with open(script) as f:
        body, call = f.read().rsplit("\nmain()", 1)
    assert not call.strip(), "the script's last line is no longer main()"
    g = {"__name__": "pairs", "__file__": script}
    exec(compile(body, script, "exec"), g)
    torch, dist, steps = g["torch"], g["dist"], {}
    for skipped in ("finish", "kineto", "variant"):
        g[skipped] = lambda *a, **k: None
    dist.init_process_group("nccl", device_id=g["DEV"])
    for mode in modes:
        g["args"].mode, g["RESULT"] = mode, {"mode": mode, "rank": rank, "variants": {}}
        g["timed"] = lambda what, step, mode=mode, **k: steps.setdefault(mode, step)
        g["MODES"][mode]()
        for _ in range(8):
            steps[mode]()
        torch.cuda.synchronize()

    def done(n, times):
        with open(f"{turns}/{name}.{n}.{rank}.part", "w") as f:
            json.dump(times, f)
        os.rename(f.name, f.name[: -len(".part")])

    done(0, [])
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
        if who != name:
            continue
        times = []
        for _ in range(STEPS):
            begun = time.perf_counter()
            steps[mode]()
            times.append((time.perf_counter() - begun) * 1e3)
            if name == "R":
                torch.cuda.synchronize()
        torch.cuda.synchronize()
        done(last, times[SKIP:])
    dist.barrier()
    os._exit(0)


def start(name, folder, port, args, out):
    env = dict(os.environ, PAIRS_SET=name, WORLD_SIZE="4", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), LOCAL_RANK="0", OMP_NUM_THREADS="4", NCCL_NVLS_ENABLE="0")
    how = ["--time", "record"] if name == "R" else ["--time", "measured", "--data"]
    ranks = "for r in 0 1 2 3; do RANK=$r " + " ".join([sys.executable, *args]) + " & done; wait"
    command = [f"{folder}/simccl", "intercept", "--topo", "testdata/topos/h200x4-4.xml", "--multicast", "off", "--devices", "real", *how, "--no-simulation", "--audit", "--timeout", "10m", "--", "sh", "-c", ranks]
    with open(f"{out}/{name}.out", "w") as f:
        return subprocess.Popen(command, env=env, stdout=f, stderr=f)


def main():
    script, out, modes = sys.argv[1], sys.argv[2], sys.argv[3].split(",")
    if "PAIRS_SET" in os.environ:
        worker(script, out, modes)
    sets = dict(x.split("=") for x in sys.argv[4:]) or {"R": "bin", "M": "bin"}
    turns = os.environ["PAIRS"] = f"{out}/turns"
    os.makedirs(turns, exist_ok=True)
    jobs = [start(name, folder, 29600 + i, sys.argv[:4], out) for i, (name, folder) in enumerate(sets.items())]

    def times(name, n, limit):
        files = [f"{turns}/{name}.{n}.{r}" for r in range(4)]
        until = time.time() + limit
        while not all(map(os.path.exists, files)):
            if time.time() > until:
                sys.exit(f"set {name} did nothing for {limit} s: see {out}/{name}.out")
            time.sleep(0.005)
        return [json.load(open(f)) for f in files]

    for name in sets:
        times(name, 0, 150)
    begun, n, sums = time.time(), 0, {}
    while time.time() - begun < float(os.environ.get("SECONDS", "80")):
        for mode in modes:
            for name in sets:
                n += 1
                with open(f"{turns}/next", "w") as f:
                    f.write(f"{n} {name} {mode}")
                os.rename(f"{turns}/next", f"{turns}/turn")
                means = [sum(x) / len(x) for x in times(name, n, 60)]
                sums.setdefault((mode, name), []).append(sum(means) / 4)
                print(mode, name, *(f"{x:.1f}" for x in means), flush=True)
    with open(f"{turns}/turn", "w") as f:
        f.write(f"{n + 1} - end")
    for (mode, name), x in sorted(sums.items()):
        ratios = sorted(a / b for a, b in zip(x, sums[mode, "R"]))
        print(f"{mode} {name}: {sum(x) / len(x):.2f} ms in {len(x)} rounds, {sum(x) / sum(sums[mode, 'R']):.3f} of R (rounds {ratios[0]:.3f} to {ratios[-1]:.3f})")
    for job in jobs:
        try:
            job.wait(20)
        except subprocess.TimeoutExpired:
            job.terminate()


main()
