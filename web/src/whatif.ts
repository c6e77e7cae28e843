// What-ifs as a second Spec, and how two runs compare.
import { bytes } from "./dom";
import type { Simulator } from "./rpc";
import type { WhatIf } from "./state";
import type { Row, Spec } from "./types";

export async function whatIfSpec(sim: Simulator, spec: Spec, w: WhatIf): Promise<Spec> {
  const out = structuredClone(spec);
  out.machine ??= {};
  const nodes = (out.machine.nodes ??= [{ topo: "dgx-h100", count: 2 }]);
  if (w.topo) {
    out.machine.nodes = [{ topo: w.topo, count: nodes.reduce((sum, n) => sum + (n.count || (n.topo ? 1 : 2)), 0) }];
    delete out.machine.class; // it is of the machine that was there
  }
  const node = out.machine.nodes![0]!;
  if (w.nodes) node.count = w.nodes;
  if (w.channels) {
    const env = ((out.nccl ??= {}).env ??= {});
    env["NCCL_MAX_NCHANNELS"] = String(w.channels);
    if (Number(env["NCCL_MIN_NCHANNELS"]) > w.channels) delete env["NCCL_MIN_NCHANNELS"];
  }
  if (w.lost) out.network = { ...out.network, faults: [...(out.network?.faults ?? []), `nic=${w.lostOn === "one" ? "node0/" : ""}${w.lost}:absent`] };
  if (w.nic) node.topo = (await sim.call<{ name: string }>("nics", { spec: out, gbps: w.nic })).name;
  return out;
}

/** Times that differ by less are called equal: what is simulated in part is as sure as that. */
const equal = 1.03;

/** At which sizes the second of two runs is faster or slower, and by how much; largest sizes first. */
export function verdict(now: Map<number, Row>, other: Map<number, Row>): string[] {
  const runs: { sign: number; sizes: Row[]; by: number[] }[] = [];
  for (const [size, a] of [...now].sort((x, y) => y[0] - x[0])) {
    const b = other.get(size);
    if (!b) continue;
    const by = a.us / b.us, sign = by >= equal ? 1 : by <= 1 / equal ? -1 : 0, last = runs.at(-1);
    const before = runs.at(-2);
    if (last?.sign === sign) { last.sizes.push(a); last.by.push(by); }
    else if (before?.sign === sign && last!.sign === 0) { before.sizes.push(...last!.sizes, a); before.by.push(...last!.by, by); runs.pop(); } // equal ones between are part of it
    else runs.push({ sign, sizes: [a], by: [by] });
  }
  const times = (by: number[], sign: number) => {
    const all = by.map((x) => (sign < 0 ? 1 / x : x)), least = Math.min(...all), most = Math.max(...all).toFixed(2);
    return `${least < equal ? "up to " : least.toFixed(2) === most ? "" : `${least.toFixed(2)} to `}${most} × as ${sign < 0 ? "slow" : "fast"}`;
  };
  if (runs.length > 5) return [1, -1].flatMap((sign) => {
    const by = runs.filter((r) => r.sign === sign).flatMap((r) => r.by);
    return by.length ? [`${times(by, sign)} at ${by.length} of ${now.size} sizes`] : [];
  });
  const name = (r: Row) => bytes(r.bytes);
  return runs.map(({ sign, sizes, by }) => `${sign ? times(by, sign) : "as fast, within 3 %,"} ${sizes.length === 1 ? "at " + name(sizes[0]!) : `from ${name(sizes.at(-1)!)} to ${name(sizes[0]!)}`}`);
}
