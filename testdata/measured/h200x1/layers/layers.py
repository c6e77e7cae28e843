"""Host time of a Mamba-2 layer of Megatron-Core, of attention with MLA and of a dense layer: torchrun --nproc-per-node=1 mamba.py OUT."""
import json, os, statistics, sys, time, traceback
import torch, torch.distributed as dist
from megatron.core import parallel_state as ps
from megatron.core.process_groups_config import ProcessGroupCollection
from megatron.core.tensor_parallel.random import model_parallel_cuda_manual_seed
from megatron.core.transformer.transformer_config import TransformerConfig, MLATransformerConfig
torch.cuda.set_device(0); dist.init_process_group("nccl")
ps.initialize_model_parallel(1, 1)
out = open(sys.argv[1], "a")
def note(**kw):
    out.write(json.dumps(kw) + "\n"); out.flush(); print(kw, flush=True)

base = dict(hidden_size=1024, ffn_hidden_size=2816, num_attention_heads=16, num_query_groups=4, kv_channels=64,
    add_bias_linear=False, gated_linear_unit=True, activation_func=torch.nn.functional.silu, normalization="RMSNorm",
    bf16=True, params_dtype=torch.bfloat16, pipeline_dtype=torch.bfloat16, attention_dropout=0.0, hidden_dropout=0.0,
    gradient_accumulation_fusion=False, bias_activation_fusion=False, masked_softmax_fusion=False,
    persist_layer_norm=False, apply_rope_fusion=False)

class Stack(torch.nn.Module):
    def __init__(s, layers): super().__init__(); s.l = torch.nn.ModuleList(layers)
    def forward(s, x):
        for l in s.l:
            x = l(x, attention_mask=None)
            if isinstance(x, tuple): x = x[0]
        return x

def mamba(layers, seq):
    from megatron.core.ssm.mamba_layer import MambaLayer, MambaLayerSubmodules
    from megatron.core.ssm.mamba_mixer import MambaMixer, MambaMixerSubmodules
    from megatron.core.fusions.fused_bias_dropout import get_bias_dropout_add
    from megatron.core.tensor_parallel.layers import ColumnParallelLinear, RowParallelLinear
    from megatron.core.transformer.spec_utils import ModuleSpec
    from megatron.core.transformer.torch_norm import WrappedTorchNorm
    cfg = TransformerConfig(num_layers=layers, mamba_num_heads=32, mamba_head_dim=64, mamba_num_groups=8,
        mamba_state_dim=128, **base)
    sub = MambaLayerSubmodules(norm=WrappedTorchNorm, mixer=ModuleSpec(module=MambaMixer,
        submodules=MambaMixerSubmodules(in_proj=ColumnParallelLinear, out_proj=RowParallelLinear)),
        mamba_bda=get_bias_dropout_add)
    pg = ProcessGroupCollection.use_mpu_process_groups()
    m = Stack([MambaLayer(cfg, sub, layer_number=i+1, pg_collection=pg) for i in range(layers)]).cuda().bfloat16()
    x = torch.randn(seq, 1, 1024, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    return m, lambda: m(x).float().mean()

from megatron.core.transformer.dot_product_attention import DotProductAttention
_init = DotProductAttention.__init__
def init(self, *a, k_channels=None, v_channels=None, **k):  # MLA names its sizes; heads of equal size here
    _init(self, *a, **k)
DotProductAttention.__init__ = init

def gpt(layers, seq, mla):
    from megatron.core.models.gpt.gpt_model import GPTModel
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
    b = dict(base)
    if mla:
        b.pop("num_query_groups"); b["kv_channels"] = 96
        cfg = MLATransformerConfig(num_layers=layers, q_lora_rank=256, kv_lora_rank=128, qk_head_dim=64, qk_pos_emb_head_dim=32,
            v_head_dim=96, multi_latent_attention=True, qk_layernorm=True, **b)
    else:
        cfg = TransformerConfig(num_layers=layers, **b)
    spec = get_gpt_layer_local_spec(qk_layernorm=mla, multi_latent_attention=mla, normalization="RMSNorm")
    m = GPTModel(config=cfg, transformer_layer_spec=spec, vocab_size=1024, max_sequence_length=4096,
        position_embedding_type="rope", share_embeddings_and_output_weights=False).cuda().bfloat16()
    tok = torch.randint(0, 1000, (1, seq), device="cuda"); pos = torch.arange(seq, device="cuda")[None]
    return m, lambda: m(tok, pos, None, labels=tok).float().mean()

def measure(run, m, n=16):
    fw, bw, jf, jb = [], [], [], []
    for i in range(n):
        torch.cuda.synchronize(); t0 = time.perf_counter()
        loss = run(); t1 = time.perf_counter(); torch.cuda.synchronize(); t2 = time.perf_counter()
        loss.backward(); t3 = time.perf_counter(); torch.cuda.synchronize(); t4 = time.perf_counter()
        for p in m.parameters(): p.grad = None
        if i >= 6: jf.append(t1-t0); jb.append(t3-t2); fw.append(t2-t0); bw.append(t4-t2)
    return [1e6*statistics.median(x) for x in (jf, jb, fw, bw)]

def count(run):
    from torch.profiler import profile, ProfilerActivity
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p:
        run().backward(); torch.cuda.synchronize()
    c = {}
    for e in p.events():
        if e.device_type == torch.autograd.DeviceType.CPU:
            for k, w in (("cudaLaunchKernel", "launch"), ("cuLaunchKernel", "launch"), ("aten::", "aten"), ("cudaStreamSynchronize", "sync")):
                if e.name.startswith(k): c[w] = c.get(w, 0) + 1
        else: c["kernel"] = c.get("kernel", 0) + 1
    return c

for rnd in range(5):
    for name, f, seq in (("mamba", mamba, 256), ("dense", lambda l, s: gpt(l, s, False), 64), ("mla", lambda l, s: gpt(l, s, True), 64)):
        try:
            got = {}
            for layers in (2, 6):
                torch.manual_seed(1); model_parallel_cuda_manual_seed(1)
                m, run = f(layers, seq)
                got[layers] = measure(run, m), count(run)
                del m, run; torch.cuda.empty_cache()
            d = [round((y-x)/4, 1) for x, y in zip(got[2][0], got[6][0])]
            note(case=name, round=rnd, seq=seq, layer_us=dict(zip(("issue_forward", "issue_backward", "forward", "backward"), d)),
                layer_counts={k: (got[6][1].get(k, 0)-got[2][1].get(k, 0))/4 for k in got[6][1]})
        except Exception:
            note(case=name, failed=traceback.format_exc()[-600:])
