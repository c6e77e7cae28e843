// One host as a drawing: CPUs above, PCIe below them, NVLink at the foot. A link's colour
// and width are its load.
import { below, h, percent, s, table } from "./dom";
import type { Device, Link, Load, Machine } from "./types";

export const step = (x: number): number => Math.max(0, Math.min(6, Math.floor(x * 6.999)));

interface Place { x: number; y: number }
const GX = 64, GY = 74, COLUMNS = 24;

interface Layout { at: (Place | undefined)[]; skip: Set<number>; width: number; height: number; bars: number[]; foot: number }

/** Places of all devices; a NIC with one port is its port. */
function layout(m: Machine): Layout {
  const at: (Place | undefined)[] = new Array(m.devices.length);
  const out = new Map<number, Link[]>();
  for (const l of m.links) (out.get(l.from) ?? out.set(l.from, []).get(l.from)!).push(l);
  const skip = new Set<number>();
  m.devices.forEach((d, i) => { if (d.kind === "NIC" && (out.get(i) ?? []).filter((l) => m.devices[l.to]!.kind === "NET").length === 1) skip.add(i); });
  let next = 0, widest = 0, top = 0, deepest = 0;
  const tree = (n: number, depth: number): number => {
    const d = skip.has(n) ? depth - 1 : depth;
    at[n] = { x: 0, y: top + d * GY };
    deepest = Math.max(deepest, d);
    const xs: number[] = [];
    for (const l of out.get(n) ?? []) {
      const k = m.devices[l.to]!.kind;
      if (!["PCI", "NET", "C2C", "LOC"].includes(l.kind) || at[l.to] || k === "CPU" || k === "NVS" || (l.kind === "LOC" && !same(m.devices[n]!, m.devices[l.to]!))) continue;
      xs.push(tree(l.to, d + 1));
    }
    const x = xs.length ? (xs[0]! + xs[xs.length - 1]!) / 2 : (next++ + 0.5) * GX;
    widest = Math.max(widest, next);
    at[n]!.x = x;
    return x;
  };
  m.devices.forEach((d, i) => {
    if (d.kind !== "CPU") return;
    if (next >= COLUMNS) { top += (deepest + 1.2) * GY; next = deepest = 0; }
    tree(i, 0);
  });
  m.devices.forEach((d, i) => { if (!at[i] && d.kind !== "NVS") tree(i, 1); });
  const width = Math.max(widest * GX, 260);
  let bottom = 0;
  for (const p of at) if (p) bottom = Math.max(bottom, p.y);
  const bars: number[] = [];
  m.devices.forEach((d, i) => { if (d.kind === "NVS") bars.push(i); });
  const foot = bottom + GY * 1.05;
  bars.forEach((i, k) => { at[i] = { x: (width * (k + 0.5)) / bars.length, y: foot }; });
  const arcs = m.links.some((l) => l.kind === "NVL" && m.devices[l.from]!.kind === "GPU" && m.devices[l.to]!.kind === "GPU");
  return { at, skip, width, height: (bars.length ? foot : bottom) + 44 + (arcs ? 64 : 0), bars, foot };
}

const same = (a: Device, b: Device) => (a.kind === "GPU") !== (b.kind === "GPU") && (a.kind === "DEV" || b.kind === "DEV");

export function drawMachine(m: Machine, use: number[] | undefined): SVGSVGElement {
  const lay = layout(m);
  const svg = s("svg", { viewBox: `-4 -26 ${lay.width + 8} ${lay.height}`, role: "img", class: "machine", "aria-label": `One host of ${m.name}: ${count(m, "GPU")} GPUs, ${count(m, "NET")} NICs; the fullest links are in the table below` });
  svg.style.minWidth = `${Math.min(lay.width, Math.max(560, lay.width * 0.62))}px`;
  svg.style.maxWidth = `${lay.width * 1.5}px`;
  edges(svg, m, lay, use);
  m.devices.forEach((d, i) => { if (!lay.skip.has(i) && lay.at[i]) svg.append(box(d, lay.at[i]!, lay, i)); });
  return svg;
}

const count = (m: Machine, kind: string) => m.devices.filter((d) => d.kind === kind).length;

function edges(svg: SVGSVGElement, m: Machine, lay: Layout, use: number[] | undefined): void {
  const seen = new Map<string, { a: number; b: number; load: number; known: boolean; text: string[]; kind: string }>();
  // The end of a NIC that is drawn as its port is that port.
  const port = new Map<number, number>();
  for (const l of m.links) if (lay.skip.has(l.from) && m.devices[l.to]!.kind === "NET") port.set(l.from, l.to);
  m.links.forEach((l, i) => {
    const a = port.get(l.from) ?? l.from, b = port.get(l.to) ?? l.to;
    if (a === b || (l.kind === "LOC" && !same(m.devices[a]!, m.devices[b]!))) return;
    const key = [Math.min(a, b), Math.max(a, b), l.kind === "NVL"].join();
    const e = seen.get(key) ?? { a, b, load: 0, known: false, text: [], kind: l.kind };
    const u = use?.[i] ?? -1;
    if (u >= 0) { e.known = true; e.load = Math.max(e.load, u); }
    e.text.push(`${m.devices[l.from]!.label} → ${m.devices[l.to]!.label}: ${l.kind} ${l.gbps.toFixed(1)} GB/s${u >= 0 ? `, busy ${percent(u)}` : ""}`);
    seen.set(key, e);
  });
  for (const e of [...seen.values()].sort((p, q) => p.load - q.load)) {
    const a = lay.at[e.a], b = lay.at[e.b];
    if (!a || !b) continue;
    let d = `M${a.x} ${a.y}L${b.x} ${b.y}`;
    const bar = m.devices[e.a]!.kind === "NVS" || m.devices[e.b]!.kind === "NVS";
    if (bar) { const dev = m.devices[e.a]!.kind === "NVS" ? b : a; if (lay.bars.length === 1) d = `M${dev.x} ${dev.y}V${lay.foot}`; }
    else if (Math.abs(a.y - b.y) < 2) d = `M${a.x} ${a.y}Q${(a.x + b.x) / 2} ${a.y + (e.kind === "NVL" ? 40 + Math.abs(a.x - b.x) * 0.16 : -34)} ${b.x} ${b.y}`;
    svg.append(s("path", { d, class: e.known && e.load > 0 ? `link r${step(e.load)}` : "link idle", "stroke-width": e.known ? (1 + 5 * Math.min(1, e.load)).toFixed(1) : 1 }, s("title", {}, e.text.join("\n"))));
  }
}

function box(d: Device, at: Place, lay: Layout, i: number): SVGGElement {
  const label = d.kind === "NVS" ? "NVSwitch" : d.kind === "PCI" ? "PCIe" : d.label;
  const bar = d.kind === "NVS" && lay.bars.length === 1 && lay.bars[0] === i;
  const w = bar ? lay.width - 8 : Math.max(46, Math.min(60, label.length * 7.4 + 10)), ht = 26;
  const x = bar ? 4 : at.x - w / 2;
  return s("g", { class: "dev k-" + d.kind }, s("title", {}, d.title), s("rect", { x, y: at.y - ht / 2, width: w, height: ht, rx: 5 }),
    s("text", { x: bar ? lay.width / 2 : at.x, y: at.y + 4, "text-anchor": "middle", textLength: label.length * 7.4 > 58 ? 54 : null, lengthAdjust: "spacingAndGlyphs" }, label));
}

/** Legend of the ramp. */
export function ramp(from: string, to: string): HTMLElement {
  const svg = s("svg", { viewBox: "0 0 140 12", class: "ramp", "aria-hidden": "true" });
  for (let i = 0; i < 7; i++) svg.append(s("rect", { class: "fill-r" + i, x: i * 20, y: 0, width: 20, height: 12 }));
  return h("p", { class: "key" }, h("span", {}, from, svg, to));
}

export function loadTable(loads: Load[]): HTMLElement {
  return below("The fullest links, as a table", table("The fullest links", ["link", "of this kind", "GB/s", "bytes", "busy"],
    loads.map((l) => [l.name, l.equal, l.gbps.toFixed(1), l.bytes.toLocaleString("en"), percent(l.use)])));
}
