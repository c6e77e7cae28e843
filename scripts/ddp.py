"""A PyTorch training job for scripts/device.sh: DistributedDataParallel over
NCCL, started by torchrun, so that a profiler plugin has something to tell of.

NCCL_PROFILER_PLUGIN=bin/libnccl-profiler-simccl.so SIMCCL_PROFILE_FILE=run \
    torchrun --nproc-per-node 2 scripts/ddp.py
"""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main():
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    dist.init_process_group("nccl", device_id=torch.device("cuda", local))
    torch.manual_seed(1)
    width = 2048
    net = torch.nn.Sequential(*(torch.nn.Linear(width, width) for _ in range(6))).cuda()
    model = DistributedDataParallel(net, device_ids=[local])
    step = torch.optim.SGD(model.parameters(), lr=1e-3)
    torch.manual_seed(2 + dist.get_rank())  # other data on every rank
    for _ in range(5):
        step.zero_grad()
        loss = model(torch.randn(64, width, device="cuda")).square().mean()
        loss.backward()
        step.step()
    # The ranks saw other data; only gradients that were averaged keep them alike.
    weight = net[0].weight.detach().clone()
    dist.broadcast(weight, src=0)
    same = torch.tensor([float(torch.equal(weight, net[0].weight))], device="cuda")
    dist.all_reduce(same, op=dist.ReduceOp.MIN)
    if dist.get_rank() == 0:
        nccl = ".".join(map(str, torch.cuda.nccl.version()))
        print(f"PyTorch {torch.__version__}, NCCL {nccl}: 5 steps on {dist.get_world_size()} ranks, loss {loss.item():.4f}, weights alike: {bool(same.item())}")
    if os.environ.get("DDP_LEAVE") != "0":
        dist.destroy_process_group()
    if not same.item():
        raise SystemExit("the ranks' weights differ")


if __name__ == "__main__":
    main()
