// One host as a drawing. A link's colour and width are its load.
import { below, h, percent, s, table } from "./dom";
import type { Load, Machine } from "./types";

export const step = (x: number): number => Math.max(0, Math.min(6, Math.floor(x * 6.999)));

/** The host as app/report/page lays it out, for the report too. */
export function drawMachine(m: Machine, use: number[] | undefined): SVGSVGElement {
  const svg = s("svg", { viewBox: `0 0 ${m.width} ${m.height}`, role: "img", class: "machine", "aria-label": `One host of ${m.name}: ${count(m, "GPU")} GPUs, ${count(m, "NET")} NICs; the fullest links are in the table below` });
  svg.style.minWidth = `${Math.min(m.width, Math.max(560, m.width * 0.62))}px`;
  svg.style.maxWidth = `${m.width * 1.5}px`;
  const lines = m.lines.map((l) => ({ ...l, load: Math.max(-1, ...l.links.map((i) => use?.[i] ?? -1)) }));
  for (const l of lines.sort((p, q) => p.load - q.load)) {
    const text = l.links.map((i) => { const k = m.links[i]!, u = use?.[i] ?? -1; return `${m.devices[k.from]!.label} → ${m.devices[k.to]!.label}: ${k.kind} ${k.gbps.toFixed(1)} GB/s${u >= 0 ? `, busy ${percent(u)}` : ""}`; });
    svg.append(s("path", { d: l.path, class: l.load > 0 ? `link r${step(l.load)}` : "link idle", "stroke-width": l.load >= 0 ? (1 + 5 * Math.min(1, l.load)).toFixed(1) : 1 }, s("title", {}, text.join("\n"))));
  }
  for (const d of m.devices) for (const b of d.boxes) {
    svg.append(s("g", { class: "dev k-" + d.kind }, s("title", {}, d.title), s("rect", { x: b.x - b.w / 2, y: b.y - b.h / 2, width: b.w, height: b.h, rx: 5 }), s("text", { x: b.x, y: b.y + 4, "text-anchor": "middle" }, d.name)));
  }
  return svg;
}

const count = (m: Machine, kind: string) => m.devices.filter((d) => d.kind === kind).length;

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
