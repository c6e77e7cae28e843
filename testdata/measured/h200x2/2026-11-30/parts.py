"""Host time of a layer of Megatron-Core and of its parts, eager: torchrun --nproc-per-node=2 parts.py OUT."""
import json, os, statistics, sys, time, traceback
import torch, torch.distributed as dist
from megatron.core import parallel_state as ps
from megatron.core.models.gpt.gpt_model import GPTModel
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.tensor_parallel.random import model_parallel_cuda_manual_seed
from megatron.core.transformer.transformer_config import TransformerConfig

rank = int(os.environ["RANK"]); world = int(os.environ["WORLD_SIZE"])
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
out = open(sys.argv[1], "a") if rank == 0 else None

def note(**kw):
    if out:
        out.write(json.dumps(kw) + "\n"); out.flush(); print(kw, flush=True)

def model(layers, experts, **kw):
    cfg = dict(num_layers=layers, hidden_size=1024, ffn_hidden_size=2816, num_attention_heads=16,
        num_query_groups=4, kv_channels=64, add_bias_linear=False, gated_linear_unit=True,
        activation_func=torch.nn.functional.silu, normalization="RMSNorm", bf16=True, params_dtype=torch.bfloat16,
        pipeline_dtype=torch.bfloat16, attention_dropout=0.0, hidden_dropout=0.0, use_cpu_initialization=False,
        tensor_model_parallel_size=ps.get_tensor_model_parallel_world_size(),
        sequence_parallel=ps.get_tensor_model_parallel_world_size() > 1,
        gradient_accumulation_fusion=False, bias_activation_fusion=False, masked_softmax_fusion=False,
        persist_layer_norm=False, apply_rope_fusion=False, qk_layernorm=True)
    if experts:
        cfg.update(num_moe_experts=experts, moe_router_topk=min(8, experts), moe_ffn_hidden_size=768,
            moe_token_dispatcher_type="alltoall", moe_router_load_balancing_type="aux_loss",
            moe_aux_loss_coeff=1e-3, expert_model_parallel_size=ps.get_expert_model_parallel_world_size())
    cfg.update(kw)
    config = TransformerConfig(**cfg)
    spec = get_gpt_layer_local_spec(num_experts=experts or None, moe_grouped_gemm=False, qk_layernorm=True,
        normalization="RMSNorm")
    m = GPTModel(config=config, transformer_layer_spec=spec, vocab_size=1024, max_sequence_length=4096,
        position_embedding_type="rope", share_embeddings_and_output_weights=False)
    return m.cuda().bfloat16()

def measure(m, seq, mbs=1, n=12):
    dev = torch.cuda.current_device()
    tok = torch.randint(0, 1000, (mbs, seq), device=dev); pos = torch.arange(seq, device=dev).repeat(mbs, 1)
    fw, bw, issue_f, issue_b = [], [], [], []
    for i in range(n):
        torch.cuda.synchronize(); t0 = time.perf_counter()
        loss = m(tok, pos, None, labels=tok).float().mean()
        t1 = time.perf_counter(); torch.cuda.synchronize(); t2 = time.perf_counter()
        loss.backward()
        t3 = time.perf_counter(); torch.cuda.synchronize(); t4 = time.perf_counter()
        for p in m.parameters(): p.grad = None
        if i >= 4:
            fw.append(t2-t0); bw.append(t4-t2); issue_f.append(t1-t0); issue_b.append(t3-t2)
    return [1e6*statistics.median(x) for x in (issue_f, issue_b, fw, bw)]

def count(m, seq, mbs=1):
    from torch.profiler import profile, ProfilerActivity
    dev = torch.cuda.current_device()
    tok = torch.randint(0, 1000, (mbs, seq), device=dev); pos = torch.arange(seq, device=dev).repeat(mbs, 1)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p:
        loss = m(tok, pos, None, labels=tok).float().mean(); loss.backward(); torch.cuda.synchronize()
    c = {}
    for e in p.events():
        k = e.name
        if e.device_type == torch.autograd.DeviceType.CPU:
            if k.startswith("cudaLaunchKernel") or k.startswith("cuLaunchKernel"): c["launch"] = c.get("launch", 0) + 1
            elif k.startswith("cudaMemcpyAsync"): c["memcpy"] = c.get("memcpy", 0) + 1
            elif k.startswith("cudaMemset"): c["memset"] = c.get("memset", 0) + 1
            elif k.startswith("cudaStreamSynchronize"): c["sync"] = c.get("sync", 0) + 1
            elif k.startswith("aten::"): c["aten"] = c.get("aten", 0) + 1
        else: c["kernel"] = c.get("kernel", 0) + 1
    return c

def case(name, experts, seqs=(64,), **kw):
    try:
        got = {}
        for layers in (2, 6):
            torch.manual_seed(1); model_parallel_cuda_manual_seed(1)
            m = model(layers, experts, **kw)
            from megatron.core.transformer.moe.moe_logging import destroy_moe_metrics_tracker
            destroy_moe_metrics_tracker()
            for s in seqs:
                for mbs in ((1,) if s < 1000 else (1, 4)):
                    got[layers, s, mbs] = measure(m, s, mbs), (count(m, s, mbs) if s == seqs[0] else {})
            del m; torch.cuda.empty_cache()
        for (layers, s, mbs) in list(got):
            if layers == 2:
                a, b = got[2, s, mbs], got[6, s, mbs]
                d = [(y-x)/4 for x, y in zip(a[0], b[0])]
                note(case=name, world=world, tp=ps.get_tensor_model_parallel_world_size(),
                    ep=ps.get_expert_model_parallel_world_size(), experts=experts, seq=s, mbs=mbs,
                    layer_us=dict(zip(("issue_forward", "issue_backward", "forward", "backward"), [round(x, 1) for x in d])),
                    layer_counts={k: (b[1].get(k, 0)-a[1].get(k, 0))/4 for k in b[1]})
    except Exception:
        note(case=name, failed=traceback.format_exc()[-300:])

def start(tp, ep):
    ps.destroy_model_parallel()
    ps.initialize_model_parallel(tensor_model_parallel_size=tp, expert_model_parallel_size=ep,
        expert_tensor_parallel_size=1)


from megatron.core.transformer.moe.moe_layer import MoELayer
spent = {}
def wrap(name):
    f = getattr(MoELayer, name)
    def g(self, *a, **k):
        t = time.perf_counter(); r = f(self, *a, **k); spent.setdefault(name, []).append(time.perf_counter()-t); return r
    setattr(MoELayer, name, g)
for n in ("route", "preprocess", "dispatch", "routed_experts_compute", "combine", "postprocess"):
    if hasattr(MoELayer, n): wrap(n)

class Block(torch.nn.Module):
    """plain PyTorch, as the jobs of testdata/measured have it"""
    def __init__(s, d=1024, h=16, ff=2816):
        super().__init__(); n = torch.nn; s.h = h
        s.ln1, s.ln2 = n.RMSNorm(d), n.RMSNorm(d)
        s.wqkv, s.wo = n.Linear(d, 3*d, bias=False), n.Linear(d, d, bias=False)
        s.w1, s.w3, s.w2 = n.Linear(d, ff, bias=False), n.Linear(d, ff, bias=False), n.Linear(ff, d, bias=False)
    def forward(s, x):
        b, t, d = x.shape
        q, k, v = (y.reshape(b, t, s.h, -1).transpose(1, 2) for y in s.wqkv(s.ln1(x)).chunk(3, dim=-1))
        a = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + s.wo(a.transpose(1, 2).reshape(b, t, -1)); y = s.ln2(x)
        return x + s.w2(torch.nn.functional.silu(s.w1(y)) * s.w3(y))

def plain():
    got = {}
    for layers in (2, 6):
        m = torch.nn.Sequential(*[Block() for _ in range(layers)]).cuda().bfloat16()
        x = torch.randn(1, 64, 1024, device="cuda", dtype=torch.bfloat16, requires_grad=True)
        fw, bw = [], []
        for i in range(60):
            torch.cuda.synchronize(); t0 = time.perf_counter(); y = m(x).sum(); torch.cuda.synchronize(); t1 = time.perf_counter()
            y.backward(); torch.cuda.synchronize(); t2 = time.perf_counter()
            if i > 10: fw.append(t1-t0); bw.append(t2-t1)
        from torch.profiler import profile, ProfilerActivity
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p:
            m(x).sum().backward(); torch.cuda.synchronize()
        k = sum(1 for e in p.events() if e.device_type != torch.autograd.DeviceType.CPU)
        got[layers] = [1e6*statistics.median(fw), 1e6*statistics.median(bw), k]
    note(case="plain PyTorch layer", layer=[(b-a)/4 for a, b in zip(got[2], got[6])])

note(torch=torch.__version__, gpu=torch.cuda.get_device_name())
for again in range(3):
    plain()
    for ep in (1, 2) if world > 1 else (1,):
        start(1, ep)
        for e in (0, 2 * ep, 16 * ep):
            torch.manual_seed(1); model_parallel_cuda_manual_seed(1)
            from megatron.core.transformer.moe.moe_logging import destroy_moe_metrics_tracker
            got = {}
            for layers in (2, 6):
                destroy_moe_metrics_tracker()
                m = model(layers, e); spent.clear()
                got[layers] = measure(m, 64, n=40)
                del m
            note(case="dense" if e == 0 else "moe", ep=ep, experts=e, local=e//ep, layer_us=[round((b-a)/4) for a, b in zip(got[2], got[6])],
                parts_us={k: round(1e6*statistics.median(v)) for k, v in spent.items()})
dist.destroy_process_group()
