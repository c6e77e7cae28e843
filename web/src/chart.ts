// Curves over a logarithmic axis of sizes, as SVG: print, zoom of the browser and style sheets reach it.
import { scaleLinear, scaleLog } from "d3-scale";
import { line } from "d3-shape";
import { bytes, h, s } from "./dom";

export interface Series { name: string; cls: string; points: [number, number][]; marks?: "circle" | "square" | "triangle" | "diamond"; bound?: boolean; /** Of a band: its other edge. */ from?: [number, number][] }
export interface Plot {
  title: string; unit: string; width: number; series: Series[]; selected?: number;
  format: (y: number) => string; onSelect?: (x: number) => void;
  /** The axis of values is linear, from 0; sizes below least are left out. */
  linear?: boolean; least?: number;
  /** Controls of the drawing, beside its title. */
  controls?: HTMLElement;
}

const L = 58, R = 26, T = 12, B = 40;

const shapes = {
  circle: "M-4 0A4 4 0 1 0 4 0 4 4 0 1 0-4 0Z", square: "M-3.5-3.5h7v7h-7Z", triangle: "M0-4.5 4.2 3.5H-4.2Z", diamond: "M0-5 4.5 0 0 5-4.5 0Z",
};

function powers(lo: number, hi: number, base: number, most: number): number[] {
  const from = Math.ceil(Math.log(lo) / Math.log(base) - 1e-9), to = Math.floor(Math.log(hi) / Math.log(base) + 1e-9);
  const step = Math.max(1, Math.ceil((to - from + 1) / most));
  const out = [];
  for (let e = from; e <= to; e += step) out.push(base ** e);
  return out;
}

export function chart(p: Plot): HTMLElement {
  // Drawn at its own size, so that its text is never smaller than that of the page.
  const W = Math.max(300, Math.min(1100, Math.round(p.width))), H = Math.round(Math.max(240, Math.min(420, W * 0.55)));
  const series = p.least ? p.series.map((q) => ({ ...q, points: q.points.filter(([z]) => z >= p.least!), from: q.from?.filter(([z]) => z >= p.least!) })) : p.series;
  const all = series.flatMap((x) => x.points).filter(([x, y]) => x > 0 && y > 0);
  const caption = h("figcaption", {}, p.title, p.controls ? h("span", { class: "controls" }, p.controls) : null);
  const key = h("p", { class: "key" }, ...series.filter((x) => x.points.length > 0).map((x) => h("span", {}, mark(x), x.name)));
  if (all.length === 0) return h("figure", { class: "chart" }, caption, h("p", { class: "soft" }, "No values yet."));
  const xs = all.map((a) => a[0]), ys = all.map((a) => a[1]);
  let [x0, x1] = [Math.min(...xs), Math.max(...xs)];
  if (x0 === x1) [x0, x1] = [x0 / 2, x1 * 2];
  const drawn = p.linear ? series.filter((q) => !q.bound).flatMap((q) => q.points.map((d) => d[1])) : ys;
  const top = Math.max(...(drawn.length ? drawn : ys)) * (p.linear ? 1.12 : 1.25), main = series.filter((q) => !q.bound).flatMap((q) => q.points.map((d) => d[1])).filter((v) => v > 0);
  const bottom = Math.min((main.length ? Math.min(...main) : Math.min(...ys)) * 0.8, top / 10);
  const x = scaleLog([x0, x1], [L, W - R]), y = p.linear ? scaleLinear([0, top], [H - B, T]) : scaleLog([bottom, top], [H - B, T]);
  const svg = s("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `${p.title}: ${p.series.map((q) => q.name).join(", ")}; the numbers are in the table of results` });
  const few = powers(x0, x1, 2, Math.max(3, Math.floor(W / 84)));
  for (const v of few) svg.append(s("line", { class: "grid", x1: x(v), x2: x(v), y1: T, y2: H - B }), s("text", { x: x(v), y: H - B + 16, "text-anchor": "middle" }, bytes(v)));
  let marksY = p.linear ? scaleLinear([0, top], [0, 1]).ticks(7) : powers(bottom, top, 10, 7);
  if (!p.linear && marksY.length < 3) marksY = [...marksY.flatMap((v) => [v, 2 * v, 5 * v]), ...powers(bottom / 10, top, 10, 9).flatMap((v) => [v, 2 * v, 5 * v])].filter((v, i, a) => v >= bottom && v <= top && a.indexOf(v) === i);
  for (const v of marksY) svg.append(s("line", { class: "grid", x1: L, x2: W - R, y1: y(v), y2: y(v) }), s("text", { x: L - 6, y: y(v) + 4, "text-anchor": "end" }, p.format(v)));
  svg.append(s("text", { class: "axis", x: (L + W - R) / 2, y: H - 4, "text-anchor": "middle" }, "size"), s("text", { class: "axis", x: 12, y: (T + H - B) / 2, transform: `rotate(-90 12 ${(T + H - B) / 2})`, "text-anchor": "middle" }, p.unit));
  const path = line<[number, number]>((d) => x(d[0]), (d) => y(d[1]));
  for (const q of series) {
    if (q.from) { svg.append(s("path", { class: q.cls, d: (path([...q.points, ...[...q.from].reverse()].filter((d) => d[1] > 0).map(([a, b]) => [a, Math.min(top, Math.max(p.linear ? 0 : bottom, b))])) ?? "M0 0") + "Z" })); continue; }
    const given = q.points.filter((d) => d[0] > 0 && d[1] > 0), pts = p.linear ? given.filter((d) => d[1] <= top) : above(given, bottom);
    if (q.bound && p.linear && pts.length < given.length) svg.append(s("text", { class: "axis", x: W - R - 4, y: T + 10, "text-anchor": "end" }, `↑ ${q.name}: ${p.format(Math.max(...given.map((d) => d[1])))} ${p.unit}`));
    if (q.marks) for (const d of pts) svg.append(s("path", { class: "mark " + q.cls, d: shapes[q.marks], transform: `translate(${x(d[0]).toFixed(1)} ${y(d[1]).toFixed(1)})` }));
    else if (pts.length === 1) svg.append(s("circle", { class: "one " + q.cls, cx: x(pts[0]![0]), cy: y(pts[0]![1]), r: 4 }));
    else svg.append(s("path", { class: "line " + q.cls, d: path(pts) ?? "" }));
  }
  const tip = h("div", { class: "tip", hidden: true });
  const cursor = s("line", { class: "cursor", y1: T, y2: H - B, x1: -9, x2: -9 });
  svg.append(cursor);
  const at = (v: number) => { cursor.setAttribute("x1", String(x(v))); cursor.setAttribute("x2", String(x(v))); };
  if (p.selected && p.selected >= (p.least ?? 0)) at(p.selected);
  const sizes = [...new Set(series.filter((q) => !q.marks).flatMap((q) => q.points.map((d) => d[0])))].sort((a, b) => a - b);
  const nearest = (e: PointerEvent | MouseEvent): number => {
    const box = svg.getBoundingClientRect();
    const want = Math.log(x.invert(((e.clientX - box.left) / box.width) * W));
    return sizes.reduce((a, b) => (Math.abs(Math.log(b) - want) < Math.abs(Math.log(a) - want) ? b : a), sizes[0]!);
  };
  const frame = h("div", { class: "plot" }, svg, tip);
  frame.addEventListener("pointermove", (e) => {
    const v = nearest(e), box = frame.getBoundingClientRect();
    at(v);
    tip.replaceChildren(h("b", {}, bytes(v)), ...series.flatMap((q) => { const d = q.points.find((c) => c[0] === v); return d ? [h("div", {}, mark(q), `${q.name}: ${q.from ? p.format(q.from.find((c) => c[0] === v)?.[1] ?? d[1]) + " to " : ""}${p.format(d[1])} ${p.unit}`)] : []; }));
    tip.hidden = false;
    const left = (x(v) / W) * box.width;
    tip.style.left = `${left > box.width / 2 ? left - tip.offsetWidth - 12 : left + 12}px`;
  });
  frame.addEventListener("pointerleave", () => { tip.hidden = true; if (p.selected && p.selected >= (p.least ?? 0)) at(p.selected); else at(-9); });
  frame.addEventListener("click", (e) => p.onSelect?.(nearest(e)));
  return h("figure", { class: "chart" }, caption, key, frame);
}

function mark(q: Series): SVGSVGElement {
  const svg = s("svg", { class: "sample", viewBox: "0 0 24 10", "aria-hidden": "true" });
  svg.append(q.from ? s("path", { class: q.cls, d: "M0 0H24V10H0Z" }) : q.marks ? s("path", { class: "mark " + q.cls, d: shapes[q.marks], transform: "translate(12 5)" }) : s("path", { class: "line " + q.cls, d: "M0 5H24" }));
  return svg;
}

/** The part of a curve at or above a value: it begins and ends on the edge of the plot. */
function above(pts: [number, number][], least: number): [number, number][] {
  const out: [number, number][] = [];
  pts.forEach((d, i) => {
    const before = pts[i - 1];
    if (before && before[1] < least !== d[1] < least) {
      const f = Math.log(least / before[1]) / Math.log(d[1] / before[1]);
      out.push([before[0] * (d[0] / before[0]) ** f, least]);
    }
    if (d[1] >= least) out.push(d);
  });
  return out;
}
