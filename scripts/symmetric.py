"""Times the collectives of PyTorch's symmetric memory, as CUDA graphs.

    torchrun --nproc-per-node N scripts/symmetric.py [FROM TO]

A line for each: operation, bytes as nccl-tests counts them, microseconds of the
slowest rank. What a version of PyTorch lacks is named and left out.
"""

import os
import sys

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm


def timed(run, calls=50, replays=4):
    """Returns microseconds of one call on the slowest rank."""
    run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            run()
    graph.replay()
    torch.cuda.synchronize()
    dist.barrier()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(replays):
        graph.replay()
    end.record()
    torch.cuda.synchronize()
    us = torch.tensor([begin.elapsed_time(end) * 1e3 / calls / replays], device="cuda")
    dist.all_reduce(us, op=dist.ReduceOp.MAX)
    return us.item()


def operations(size, ranks, group):
    """Yields names with functions that run one operation of so many bytes."""
    ops = torch.ops.symm_mem
    count = size // 4
    whole = symm.empty(count, dtype=torch.float32, device="cuda").fill_(1)
    symm.rendezvous(whole, group)
    yield "all_reduce one-shot", lambda: ops.one_shot_all_reduce(whole, "sum", group)
    yield "all_reduce two-shot", lambda: ops.two_shot_all_reduce_(whole, "sum", group)
    part = symm.empty(count // ranks, dtype=torch.float32, device="cuda").fill_(1)
    symm.rendezvous(part, group)
    yield "all_gather", lambda: torch.ops._c10d_functional.wait_tensor(ops._low_contention_all_gather(part, group))
    yield "reduce_scatter", lambda: torch.ops._c10d_functional.wait_tensor(ops._low_contention_reduce_scatter(whole, "sum", group))


def main():
    low, high = (int(a) for a in sys.argv[1:3]) if len(sys.argv) > 2 else (1 << 10, 1 << 28)
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    group = dist.group.WORLD.group_name
    first = dist.get_rank() == 0
    if first:
        print(f"# PyTorch {torch.__version__}, {dist.get_world_size()} x {torch.cuda.get_device_name()}")
    lacking = set()
    size = low
    while size <= high:
        for name, run in operations(size, dist.get_world_size(), group):
            if name in lacking or name.endswith("one-shot") and size > 16 << 20:
                continue
            try:
                us = timed(run)
            except (RuntimeError, AttributeError, NotImplementedError) as e:
                lacking.add(name)
                us = None
                if first:
                    print(f"# {name}: {str(e).splitlines()[0]}")
            if us is not None and first:
                print(name.replace(" ", "/"), size, f"{us:.2f}", flush=True)
        size *= 4
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
