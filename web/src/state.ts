// The state of the page: a Spec and what is looked at. It is kept in the address.
import type { Spec } from "./types";

export interface WhatIf { topo?: string; nic?: number; lost?: string; lostOn?: "one"; nodes?: number; channels?: number }
export interface State { spec: Spec; size: number; channel: number; whatIf: WhatIf }

export const first = (): State => ({
  spec: { machine: { nodes: [{ topo: "dgx-h100", count: 2 }] }, workload: { op: "all_reduce" } },
  size: 0, channel: 0, whatIf: {},
});

/** The member of a Spec without empty parts, in one order, so that equal Specs give equal text. */
export function tidy(spec: Spec): Spec {
  const clean = (v: unknown): unknown => {
    if (Array.isArray(v)) { const a = v.map(clean).filter((x) => x !== undefined); return a.length ? a : undefined; }
    if (v !== null && typeof v === "object") {
      const o: Record<string, unknown> = {};
      for (const k of Object.keys(v).sort()) { const x = clean((v as Record<string, unknown>)[k]); if (x !== undefined) o[k] = x; }
      return Object.keys(o).length ? o : undefined;
    }
    return v === "" || v === 0 || v === false || v === null ? undefined : v;
  };
  const out = clean(spec) as Spec;
  delete out.scenario;
  return out;
}

/** What the page asks of the simulator on a first visit: method and query. */
export function firstCalls(): [string, object][] {
  const spec = tidy(first().spec);
  return [["hello", {}], ["machine", { spec }], ["model", { spec }], ["explain", { spec, size: String(1 << 26) }], ["run", { spec }]];
}

/** What the address has: a few readable keys, or the whole Spec where they cannot say it. */
export function encode(st: State): string {
  const q = readable(st.spec);
  if (JSON.stringify(tidy(ofReadable(q))) !== JSON.stringify(tidy(st.spec))) {
    for (const k of [...q.keys()]) q.delete(k);
    q.set("spec", JSON.stringify(tidy(st.spec)));
  }
  if (st.size) q.set("size", String(st.size));
  if (st.channel) q.set("channel", String(st.channel));
  if (st.whatIf.topo) q.set("if-topo", st.whatIf.topo);
  if (st.whatIf.nic) q.set("if-nic", String(st.whatIf.nic));
  if (st.whatIf.lost) q.set("if-lost", st.whatIf.lost);
  if (st.whatIf.lost && st.whatIf.lostOn) q.set("if-lost-on", st.whatIf.lostOn);
  if (st.whatIf.nodes) q.set("if-nodes", String(st.whatIf.nodes));
  if (st.whatIf.channels) q.set("if-channels", String(st.whatIf.channels));
  return q.toString();
}

export function decode(hash: string): State {
  const q = new URLSearchParams(hash.replace(/^#/, ""));
  const st = first();
  if (q.has("spec")) {
    try {
      const spec = JSON.parse(q.get("spec")!) as Spec;
      if (spec && typeof spec === "object" && typeof spec.workload?.op === "string") st.spec = spec;
    } catch { /* an address that was cut: the default */ }
  } else if (q.has("topo") || q.has("op")) st.spec = ofReadable(q);
  const n = (key: string) => { const v = Number(q.get(key)); return Number.isFinite(v) && v > 0 ? v : 0; };
  st.size = n("size");
  st.channel = Math.floor(n("channel"));
  st.whatIf = { topo: q.get("if-topo") || undefined, nic: n("if-nic") || undefined, lost: q.get("if-lost") || undefined, lostOn: q.get("if-lost-on") === "one" ? "one" : undefined, nodes: Math.floor(n("if-nodes")) || undefined, channels: Math.floor(n("if-channels")) || undefined };
  return st;
}

function readable(spec: Spec): URLSearchParams {
  const q = new URLSearchParams();
  const set = (k: string, v: string | number | undefined) => { if (v) q.set(k, String(v)); };
  const node = spec.machine?.nodes?.[0];
  set("topo", node?.topo);
  set("nodes", node?.count);
  set("gpus", spec.machine?.gpus);
  set("multicast", spec.machine?.multicast);
  set("class", spec.machine?.class);
  set("op", spec.workload.op);
  set("b", spec.workload.range?.min);
  set("e", spec.workload.range?.max);
  set("f", spec.workload.range?.factor);
  set("sizes", spec.workload.sizes?.join(","));
  set("type", spec.workload.types?.[0]);
  set("redop", spec.workload.reductions?.[0]);
  set("nccl", spec.nccl?.version);
  set("launch", spec.engine?.launch);
  set("fabric", spec.network?.fabric);
  set("network", spec.network?.model);
  set("cc", spec.network?.cc);
  set("balance", spec.network?.balance);
  set("network-class", spec.network?.class);
  for (const f of spec.network?.faults ?? []) q.append("fault", f);
  for (const [k, v] of Object.entries(spec.nccl?.env ?? {})) q.append("env", `${k}=${v}`);
  return q;
}

function ofReadable(q: URLSearchParams): Spec {
  const text = (k: string) => q.get(k) ?? "";
  const num = (k: string) => Math.max(0, Math.floor(Number(q.get(k)) || 0));
  const env: Record<string, string> = {};
  for (const e of q.getAll("env")) { const i = e.indexOf("="); if (i > 0) env[e.slice(0, i)] = e.slice(i + 1); }
  return {
    machine: { nodes: [{ topo: text("topo"), count: num("nodes") }], gpus: num("gpus"), multicast: text("multicast"), class: text("class") },
    workload: { op: text("op") || "all_reduce", sizes: text("sizes") ? text("sizes").split(",") : [], range: { min: text("b"), max: text("e"), factor: num("f") }, types: text("type") ? [text("type")] : [], reductions: text("redop") ? [text("redop")] : [] },
    nccl: { version: text("nccl"), env }, engine: { launch: text("launch") }, network: { fabric: text("fabric"), model: text("network"), cc: text("cc"), balance: text("balance"), class: text("network-class"), faults: q.getAll("fault") },
  };
}
