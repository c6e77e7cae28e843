"""Several jobs of train_modes.py, one after the other, in one process a rank: a start of
PyTorch takes longer than the job. For scripts/intercept-device.sh (JOBS=1).

  torchrun ... intercept-jobs.py TRAIN_MODES.PY OUT MODE,MODE... ARGUMENTS

OUT/MODE/times_rank<r>.json has what the script itself would write: the times of its main
steps. Profiles, logs and variants are left out.
"""

import gc
import json
import os
import sys
import traceback


def main():
    script, out, modes = sys.argv[1], sys.argv[2], sys.argv[3].split(",")
    rank = int(os.environ.get("RANK", "0"))
    sys.argv = [script, "--mode", modes[0], "--out", out, *sys.argv[4:], "--budget", "0"]
    with open(script) as f:
        text = f.read()
    body, call = text.rsplit("\nmain()", 1)
    assert not call.strip(), "the script's last line is no longer main()"
    g = {"__name__": "jobs", "__file__": script}
    exec(compile(body, script, "exec"), g)
    torch, dist = g["torch"], g["dist"]
    g["finish"] = lambda *a, **k: None
    g["kineto"] = lambda *a, **k: None
    dist.init_process_group("nccl", device_id=g["DEV"])
    bad = 0
    for mode in modes:
        g["args"].mode = mode
        g["RESULT"] = {"mode": mode, "rank": rank, "variants": {}}
        try:
            g["MODES"][mode]()
        except Exception:
            bad = 1
            g["RESULT"]["error"] = traceback.format_exc()
            print(f"[{mode} rank {rank}] FAILED\n{g['RESULT']['error']}", flush=True)
        folder = os.path.join(out, mode)
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, f"times_rank{rank}.json"), "w") as f:
            json.dump(g["RESULT"], f, default=str)
        g["KEEP"].clear()
        gc.collect()
        torch.cuda.empty_cache()
        with open("/proc/uptime") as f:
            print(f"[{mode} rank {rank}] ended {f.read().split()[0]}", flush=True)
    torch.cuda.synchronize()
    dist.barrier()
    os._exit(bad)


main()
