// What-ifs as a second Spec.
import type { Simulator } from "./rpc";
import type { WhatIf } from "./state";
import type { Spec } from "./types";

export async function whatIfSpec(sim: Simulator, spec: Spec, w: WhatIf): Promise<Spec> {
  const out = structuredClone(spec);
  out.machine ??= {};
  const nodes = (out.machine.nodes ??= [{ topo: "dgx-h100", count: 2 }]);
  if (w.nodes) nodes[0]!.count = w.nodes;
  if (w.channels) {
    const env = ((out.nccl ??= {}).env ??= {});
    env["NCCL_MAX_NCHANNELS"] = String(w.channels);
    if (Number(env["NCCL_MIN_NCHANNELS"]) > w.channels) delete env["NCCL_MIN_NCHANNELS"];
  }
  if (w.lost) out.network = { ...out.network, faults: [...(out.network?.faults ?? []), `nic=${w.lostOn === "one" ? "node0/" : ""}${w.lost}:absent`] };
  if (w.nic) nodes[0]!.topo = (await sim.call<{ name: string }>("nics", { spec, gbps: w.nic })).name;
  return out;
}
