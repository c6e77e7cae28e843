"""Data parallel training for scripts/intercept-device.sh: every rank is a process on
GPU 0, with a model of 67 million parameters (268 MB). It ends with 0 where all ranks
have the same parameters after five steps on different inputs.

RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are torchrun's.
"""

import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main():
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.cuda.set_device(0)
    dist.init_process_group("nccl", rank=rank, world_size=ranks)
    torch.manual_seed(1)
    width = 2048
    net = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.GELU()) for _ in range(16))).cuda()
    model = DistributedDataParallel(net, device_ids=[0])
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    torch.manual_seed(2 + rank)  # other inputs on every rank
    data = torch.randn(16, width, device="cuda")
    for step in range(5):
        optimizer.zero_grad()
        loss = model(data).square().mean()
        loss.backward()
        optimizer.step()
        if rank == 0:
            print("step", step, "loss", loss.item(), flush=True)
    mine = torch.cat([p.detach().reshape(-1)[:100] for p in net.parameters()])
    all_of = [torch.empty_like(mine) for _ in range(ranks)]
    dist.all_gather(all_of, mine)
    same = all(torch.equal(mine, other) for other in all_of)
    if rank == 0:
        print(f"{ranks} ranks have the same parameters: {same}", flush=True)
    dist.barrier()
    torch.cuda.synchronize()
    sys.stdout.flush()
    os._exit(0 if same else 1)


main()
