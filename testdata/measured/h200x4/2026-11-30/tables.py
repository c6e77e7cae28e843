"""threads.jsonl as files of simccl bench, for calibrate fit: python3 tables.py threads.jsonl LIKE.json DIR, where
LIKE.json is a file of the same machine (testdata/measured/h200x4/calibrate/first/default.all_gather.json)."""
import collections, copy, json, statistics, sys

base = json.load(open(sys.argv[2]))
times = collections.defaultdict(dict)
for row in map(json.loads, open(sys.argv[1])):
    if row["mode"] == "procs" and row["bytes"] >= 1 << 20 and row["bytes"] // 2 % row["n"] == 0:
        times[row["n"], row["op"]][row["bytes"]] = statistics.median(row["us"])
for (n, op), rows in times.items():
    out = copy.deepcopy(base)
    out["args"] = ["simccl", "bench", op]
    out["config"].update(graph=0, iterations=100, devices=base["config"]["devices"][:n])
    out["results"] = [{"size": size, "count": size // 2 // (1 if op == "all_reduce" else n), "type": "half",
        "redop": "sum" if "reduce" in op else "none", "root": "    -1", "actual_iterations": 100, "experiment_name": "",
        "simccl": {}, "out_of_place": {"time": us, "alg_bw": size / us / 1e3, "bus_bw": size / us / 1e3, "nwrong": 0.0},
        "in_place": {"time": 0.0, "alg_bw": 0, "bus_bw": 0, "nwrong": None}} for size, us in sorted(rows.items())]
    json.dump(out, open(f"{sys.argv[3]}/threads-{n}.{op}.json", "w"))
