# torchrun --nproc-per-node=N peers.py: PyTorch's kernels over the memory of peers, in CUDA graphs.
import os, torch, torch.distributed as dist, torch.distributed._symmetric_memory as sm
r=int(os.environ["LOCAL_RANK"]); torch.cuda.set_device(r); dist.init_process_group("nccl")
n=dist.get_world_size(); g=dist.group.WORLD.group_name; sm.enable_symm_mem_for_group(g)
def timed(f,it=50,rep=7):
    f(); torch.cuda.synchronize(); G=torch.cuda.CUDAGraph()
    with torch.cuda.graph(G):
        for _ in range(it): f()
    out=[]
    for _ in range(rep):
        dist.barrier(); torch.cuda.synchronize()
        a,b=(torch.cuda.Event(enable_timing=True) for _ in "ab")
        a.record(); G.replay(); b.record(); torch.cuda.synchronize(); out.append(a.elapsed_time(b)*1e3/it)
    out.sort(); return out[len(out)//2]
import json
for p in range(8,27):
    t=sm.empty((2**p)//2,dtype=torch.bfloat16,device=f"cuda:{r}"); sm.rendezvous(t,g); t.zero_()
    o=torch.ops.symm_mem; x=torch.zeros((2**p)//2,dtype=torch.bfloat16,device=f"cuda:{r}")
    row={"ranks":n,"bytes":2**p}
    def put(k,f):
        try: row[k]=round(timed(f),3)
        except Exception as e: row[k]=None; row[k+"_error"]=str(e)[:120]
    put("one_shot_us",lambda:o.one_shot_all_reduce(t,"sum",g))
    put("two_shot_us",lambda:o.two_shot_all_reduce_(t,"sum",g))
    put("nccl_us",lambda:dist.all_reduce(x))
    if r==0: print(json.dumps(row),flush=True)
dist.destroy_process_group()
