#!/usr/bin/env python3
"""Runs other simulators beside simccl and writes the section "Others" of docs/results/SCALE.md.

    scripts/peers.py --simccl bin/simccl --loggopsim DIR --astra DIR

Each program simulates a ring all_reduce or an alltoall of 1 GiB, in alternation with the
others, and the table has the median of its user CPU time and its largest memory. A program
that is not given has a dash, as has one that does not end within --limit seconds, and
what has more ranks than --most. What they read is made here, in a folder of its
own that is deleted; what turns text into LogGOPSim's input is not counted.

  DIR of LogGOPSim has LogGOPSim and txt2bin, built with -O3 (github.com/spcl/LogGOPSim).
  DIR of ASTRA-sim has AstraSim_Analytical_Congestion_Aware and _Unaware, of its build
  with -O3 (github.com/astra-sim/astra-sim, build/astra_analytical).
  --versions says which commits these are.
"""
import argparse
import datetime
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile

BYTES = 1 << 30
HEAD = "## Others\n"
LONG = 5  # seconds: what takes more is run once


def goal(path, op, n):
    """Writes a schedule in LogGOPSim's text format: messages of one operation each have a tag of their own."""
    block = BYTES // n
    with open(path, "w") as out:
        out.write(f"num_ranks {n}\n")
        for r in range(n):
            lines = []
            if op == "all_reduce":  # n-1 steps of reduce-scatter and as many of all-gather, along the ring
                for step in range(2 * (n - 1)):
                    lines.append(f"s{step}: send {block}b to {(r + 1) % n} tag {step}")
                    lines.append(f"r{step}: recv {block}b from {(r - 1) % n} tag {step}")
                    if step:
                        lines.append(f"s{step} requires r{step - 1}")
            else:
                for d in range(1, n):
                    lines.append(f"s{d}: send {block}b to {(r + d) % n} tag {d}")
                    lines.append(f"r{d}: recv {block}b from {(r - d) % n} tag {d}")
            out.write(f"rank {r} {{\n" + "\n".join(lines) + "\n}\n")


def varint(x):
    out = b""
    while x > 127:
        out += bytes([x & 127 | 128])
        x >>= 7
    return out + bytes([x])


def field(number, payload):
    """A protobuf field: an integer, or bytes."""
    if isinstance(payload, int):
        return varint(number << 3) + varint(payload)
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def chakra(folder, op, n):
    """Writes a Chakra trace of one collective for each rank (et_def.proto: GlobalMetadata, Node)."""
    kind = {"all_reduce": 0, "alltoall": 6}[op]

    def attribute(name, number, value):
        return field(10, field(1, name.encode()) + field(number, value))

    node = (field(2, op.encode()) + field(3, 7) + attribute("is_cpu_op", 27, 0)
            + attribute("comm_type", 9, kind) + attribute("comm_size", 9, BYTES))
    head = field(1, b"0.0.4")
    for r in range(n):
        (folder / f"work.{r}.et").write_bytes(varint(len(head)) + head + varint(len(node)) + node)
    way = "ring" if op == "all_reduce" else "direct"
    (folder / "system.json").write_text(json.dumps({
        "scheduling-policy": "LIFO", "endpoint-delay": 10, "active-chunks-per-dimension": 1, "preferred-dataset-splits": 1,
        "all-reduce-implementation": [way], "all-gather-implementation": [way], "reduce-scatter-implementation": [way],
        "all-to-all-implementation": [way], "collective-optimization": "localBWAware", "local-mem-bw": 3350, "boost-mode": 0}))
    shape = "Ring" if op == "all_reduce" else "Switch"
    (folder / "network.yml").write_text(
        f"topology: [ {shape} ]\nnpus_count: [ {n} ]\nbandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\n")
    (folder / "memory.json").write_text(json.dumps({"memory-type": "NO_MEMORY_EXPANSION"}))


def measured(args, env, folder, limit):
    """Runs a command; its user CPU seconds and MB, None where it takes more than the limit or fails."""
    def bounded():
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))

    p = subprocess.Popen(args, env={**os.environ, **env}, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=bounded)
    _, status, used = os.wait4(p.pid, 0)
    p.returncode = status
    if status:
        print(f"{args[0].name} in {folder}: status {status}", file=sys.stderr)
        return None
    return used.ru_utime, used.ru_maxrss >> 10


def commands(opts, op, n, folder):
    """What runs an operation, by the column of the table: the arguments and the environment."""
    out = {}
    if opts.loggopsim and n <= opts.most:
        goal(folder / "in.goal", op, n)
        if subprocess.run([opts.loggopsim / "txt2bin", "-i", "in.goal", "-o", "in.bin"], cwd=folder,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
            out["LogGOPSim"] = [opts.loggopsim / "LogGOPSim", "-f", "in.bin", "-b"], {}
        (folder / "in.goal").unlink()
    if opts.astra and n <= opts.most:
        chakra(folder, op, n)
        for how in ("Unaware", "Aware"):
            out[f"ASTRA-sim, {how.lower()}"] = [opts.astra / f"AstraSim_Analytical_Congestion_{how}", "--workload-configuration=work",
                                                "--system-configuration=system.json", "--remote-memory-configuration=memory.json",
                                                "--network-configuration=network.yml"], {}
    own = [opts.simccl, "run", op, "-b", "1G", "-e", "1G", "--nodes", str(n // 8), "-c", "0"]
    if op == "all_reduce":
        out["simccl, NCCL_ALGO=Ring"] = own, {"NCCL_ALGO": "Ring"}
    out["simccl, by default"] = own, {}
    return out


COLUMNS = ["LogGOPSim", "ASTRA-sim, unaware", "ASTRA-sim, aware", "simccl, NCCL_ALGO=Ring", "simccl, by default"]


def row(opts, op, n):
    """One row of the table: every program in alternation."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="peers"))
    try:
        all_of = commands(opts, op, n, folder)
        took = {name: [] for name in all_of}
        for _ in range(opts.runs):
            for name, (args, env) in all_of.items():
                if not took[name] or None not in took[name] and took[name][0][0] < LONG:
                    took[name].append(measured(args, env, folder, opts.limit))
    finally:
        shutil.rmtree(folder)
    cells = []
    for name in COLUMNS:
        runs = took.get(name, [None])
        if None in runs:
            cells.append("–")
            continue
        cells.append(f"{statistics.median(t for t, _ in runs):.2f} s, {max(m for _, m in runs)} MB")
    what = "ring all_reduce" if op == "all_reduce" else op
    return f"| {what} | {n:,} | " + " | ".join(cells) + " |"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--simccl", type=pathlib.Path, required=True)
    p.add_argument("--loggopsim", type=pathlib.Path)
    p.add_argument("--astra", type=pathlib.Path)
    p.add_argument("--versions", default="commits not given")
    p.add_argument("--runs", type=int, default=3)
    p.add_argument("--limit", type=int, default=60, help="seconds of a processor after which a run is stopped")
    p.add_argument("--most", type=int, default=128, help="ranks beyond which only simccl is run")
    p.add_argument("--ranks", default="64,128,1024,4096")
    p.add_argument("--page", type=pathlib.Path, help="docs/results/SCALE.md; without it the section is printed")
    opts = p.parse_args()
    for name in ("simccl", "loggopsim", "astra", "page"):
        if getattr(opts, name):
            setattr(opts, name, getattr(opts, name).resolve())
    load = os.getloadavg()[0]
    rows = [row(opts, op, int(n)) for op in ("all_reduce", "alltoall") for n in opts.ranks.split(",")]
    text = f"""{HEAD}
1 GiB, each program in alternation with the others on one machine by `make peers`, on {datetime.date.today()} (load average at the beginning: {load:.1f}): the median
of the user CPU time of {opts.runs} runs (of one, beyond {LONG} s), and the largest memory. {opts.versions}. ASTRA-sim has a flat ring of 50 GB/s, and for alltoall one switch;
LogGOPSim's LogGP has no contention. A dash: not run, refused, or no end within {opts.limit} s of a processor.

| operation | ranks | {" | ".join(COLUMNS)} |
|---|---|{"---|" * len(COLUMNS)}
""" + "\n".join(rows) + """

On packets, for a ring of 64 ranks, on 2026-11-22: SimAI on ns-3 94 s, ATLAHS on htsim 61 s.

They simulate other things: messages or packets without NCCL's slices, credits and proxy threads, or with a network in
more detail than here. All times of simccl are with contention on NVLink, PCIe and the NICs' ports.
"""
    if not opts.page:
        print(text)
        return
    page = opts.page.read_text()
    begin = page.index(HEAD)
    end = page.find("\n## ", begin + len(HEAD))
    opts.page.write_text(page[:begin] + text + (page[end:] if end >= 0 else ""))


if __name__ == "__main__":
    sys.exit(main())
