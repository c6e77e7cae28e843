// Who wins at which size, why, and the path matrix.
import { below, bytes, h, micros, short, table } from "./dom";
import { ramp, step } from "./machine";
import type { Explained, Machine, Model } from "./types";

/** Which kind's colour an algorithm has. */
export const algoClass = (a: string): string => ({ Ring: "blue", Tree: "orange", NVLS: "green", NVLSTree: "purple", CollNetDirect: "teal", CollNetChain: "teal", PAT: "pink" })[a] ?? "grey";

/** Algorithms and protocols by size: the time over that of the best, the winner with its name. */
export function winners(m: Model, selected: number, select: (size: number) => void): HTMLElement {
  if (m.rivals.length === 0) return h("p", { class: "soft" }, "NCCL chooses nothing for this operation: sends and receives have one schedule.");
  const best = m.sizes.map((_, i) => Math.min(...m.rivals.map((r) => r.us[i]! || Infinity)));
  const head: (Node | string)[] = ["", ...m.sizes.map((z) => h("button", { type: "button", class: z === selected ? "on" : undefined, click: () => select(z) }, short(z)))];
  const rows = m.rivals.map((r) => [
    h("th", { scope: "row", class: "t" }, h("i", { class: "sw k-" + algoClass(r.algo) }), `${r.algo} ${r.proto}`),
    ...r.us.map((us, i) => {
      const won = m.choice[i] === `${r.algo} ${r.proto}`, x = us / best[i]!;
      const cls = (us ? `cell fill-r${step(Math.log2(Math.max(1, x)) / 3)}` : "cell off") + (won ? " won" : "") + (m.sizes[i] === selected ? " here" : "");
      return h("td", { class: cls, title: us ? `${m.labels[i]}: ${micros(us)}` : "off" }, us ? (won ? h("b", {}, "✓") : x < 9.95 ? x.toFixed(1) : Math.round(Math.min(x, 99)).toString()) : "·");
    }),
  ]);
  return h("div", {}, h("p", { class: "soft" }, "Time by NCCL's cost model over that of the fastest; the stronger in colour, the slower. ✓ is what NCCL takes, · is off."), h("div", { class: "heat" }, table("Who wins at which size", head, rows)), ramp("fast", "8 × as slow"));
}

export function explained(e: Explained): HTMLElement {
  const num = (x: number | undefined, d = 2) => (x === undefined ? "–" : x.toFixed(d));
  const rivals = [...(e.choice ? [e.choice] : []), ...(e.rivals ?? []).filter((c) => c.available)];
  return h("div", {},
    e.choice ? h("p", {}, h("b", {}, `NCCL takes ${e.choice.algo} with ${e.choice.proto}`), ` for ${bytes(e.size)}: ${num(e.choice.timeUs)} µs by its cost model, of which ${num(e.choice.latencyUs)} µs are latency; the rest are bytes at ${num(e.choice.bandwidthGBps, 1)} GB/s.`) : h("p", {}, e.note ?? "NCCL chooses nothing here."),
    ...(e.warnings ?? []).map((w) => h("p", { class: "warn" }, w)),
    rivals.length ? table("Why this choice", ["algorithm", "protocol", "time µs", "×", "latency µs", "GB/s", "why"], rivals.map((c, i) => [c.algo, c.proto, num(c.timeUs), c.slower ? c.slower.toFixed(2) : i === 0 && e.choice ? "1.00" : "–", num(c.latencyUs), num(c.bandwidthGBps, 1), i === 0 && e.choice ? "taken" : "slower"]), [0, 1, 6]) : null,
    unavailable(e),
    e.derivation?.length ? below("How the bandwidth is derived", table("Derivation", ["step", "GB/s after it"], e.derivation.map((d) => [String(d["what"]), num(d["gbps"] as number)]))) : null,
    e.crossovers?.length ? below("Choice by size, to the byte", table("Choice by size", ["from B", "to B", "algorithm", "protocol"], e.crossovers.map((c) => [c.from.toLocaleString("en"), c.to.toLocaleString("en"), c.mixed ? `${c.algo} and others, which alternate` : c.algo, c.proto + (c.here ? " ← this size" : "")]), [2, 3])) : null,
    e.refused?.length ? below("Paths that a rule refuses", table("Refused paths", ["what", "rule", "setting", "pairs"], e.refused.map((r) => [r.what, r.rule, r.setting ?? "", `${r.pairs.length}: ${r.pairs.slice(0, 4).join(", ")}${r.pairs.length > 4 ? " …" : ""}`]), [0, 1, 2, 3])) : null,
    below("As simccl explain prints it", h("pre", { tabindex: 0 }, e.text)));
}

/** What NCCL cannot take here: protocols with one reason in one row. */
function unavailable(e: Explained): HTMLElement | null {
  const rows = new Map<string, [string, string[], string]>();
  for (const c of e.rivals ?? []) {
    if (c.available) continue;
    const why = (c.off ?? []).map((o) => [o["rule"], o["setting"]].filter(Boolean).join("; ")).join(" · "), row = rows.get(c.algo + why);
    if (row) row[1].push(c.proto);
    else rows.set(c.algo + why, [c.algo, [c.proto], why]);
  }
  return rows.size ? table("Why not", ["algorithm", "protocols", "why not"], [...rows.values()].map(([a, p, why]) => [a, p.join(", "), why]), [0, 1, 2]) : null;
}

export function matrix(m: Machine): HTMLElement {
  const { ends, kinds, gbps } = m.paths;
  if (ends.length === 0) return h("p", { class: "soft" }, "The host has too many GPUs and NICs for a matrix.");
  const most = Math.max(1, ...gbps.flat());
  const x = (v: number) => Math.log(1 + v) / Math.log(1 + most);
  return h("div", {}, h("p", { class: "soft" }, "A row is the sender, a column the receiver; kind of path, and GB/s."),
    h("div", { class: "heat matrix" }, table("Path matrix", ["", ...ends], ends.map((a, i) => [h("th", { scope: "row", class: "t" }, a), ...kinds[i]!.map((k, j) => h("td", { class: k ? `cell fill-r${step(x(gbps[i]![j]!) * 0.999)}` : "cell off", title: k ? `${a} → ${ends[j]}: ${k}, ${gbps[i]![j]} GB/s` : "itself" }, k ? h("span", {}, k, h("br"), String(+gbps[i]![j]!.toFixed(1))) : "–"))]))),
    ramp("slow", "fast"),
    h("p", { class: "soft" }, "NVL NVLink · NVB NVLink through a GPU · C2C chip to chip · PIX one PCIe switch · PXB PCIe switches · P2C C2C, then PCIe · PXN through the NIC's own GPU · PHB through the CPU · SYS between CPUs · NET network only"));
}

