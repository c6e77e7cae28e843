// Rings and trees of a channel, with dots that move as data does.
import { below, h, reduced, s, table } from "./dom";
import type { Machine } from "./types";

const SIZE = 320, C = SIZE / 2, RAD = 128;
/** Beyond so many ranks nodes are drawn in place of ranks. */
const MANY = 64;

/** What is drawn of a channel: ranks, or nodes where there are many. */
function byNode(m: Machine): boolean { return m.ranks > MANY; }

function ringOf(m: Machine, channel: number): { ids: number[]; label: (i: number) => string; node: (i: number) => number } {
  const order = m.rings[channel] ?? [];
  if (!byNode(m)) return { ids: order, label: (i) => String(i), node: (i) => m.nodeOf[i]! };
  const nodes: number[] = [];
  for (const r of order) { const n = m.nodeOf[r]!; if (nodes[nodes.length - 1] !== n) nodes.push(n); }
  if (nodes.length > 1 && nodes[0] === nodes[nodes.length - 1]) nodes.pop();
  return { ids: nodes, label: (i) => "n" + i, node: (i) => i };
}

export function drawRing(m: Machine, channel: number, moving: boolean): HTMLElement {
  const { ids, label, node } = ringOf(m, channel);
  const svg = s("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, role: "img", class: "shape", "aria-label": `Ring of channel ${channel}: ${ids.slice(0, 64).map(label).join(" → ")}` });
  svg.append(arrow("tipr"));
  const place = new Map<number, [number, number]>();
  const sorted = [...ids].sort((a, b) => a - b);
  sorted.forEach((id, i) => { const a = (2 * Math.PI * i) / sorted.length - Math.PI / 2; place.set(id, [C + RAD * Math.cos(a), C + RAD * Math.sin(a)]); });
  const small = ids.length > 32, r = small ? Math.max(1, Math.min(4, (2.4 * RAD) / ids.length)) : 12;
  let loop = "";
  ids.forEach((id, i) => {
    const [x, y] = place.get(id)!, to = ids[(i + 1) % ids.length]!, [X, Y] = place.get(to)!;
    loop += (i === 0 ? `M${x.toFixed(1)} ${y.toFixed(1)}` : "") + `L${X.toFixed(1)} ${Y.toFixed(1)}`;
    if (ids.length < 2) return;
    const len = Math.hypot(X - x, Y - y) || 1, ux = (X - x) / len, uy = (Y - y) / len;
    const far = !byNode(m) && node(id) !== node(to);
    svg.append(s("line", { class: far ? "hop far" : "hop", x1: x + ux * r, y1: y + uy * r, x2: X - ux * (r + 3), y2: Y - uy * (r + 3), "marker-end": "url(#tipr)" }));
  });
  if (moving && !reduced() && ids.length > 1) {
    const n = Math.min(ids.length, 16), time = Math.max(4, Math.min(20, ids.length * 0.5));
    for (let i = 0; i < n; i++) svg.append(s("circle", { class: "dot", r: small ? 2.5 : 4 }, s("animateMotion", { path: loop, dur: `${time}s`, begin: `${-(time * i) / n}s`, repeatCount: "indefinite" })));
  }
  for (const id of sorted) {
    const [x, y] = place.get(id)!;
    svg.append(s("g", { class: "rank" + (node(id) % 2 ? " odd" : "") }, s("circle", { cx: x, cy: y, r }), small ? null : s("text", { x, y: y + 4, "text-anchor": "middle" }, label(id))));
  }
  return h("figure", {}, h("figcaption", {}, `Ring${byNode(m) ? ", by node" : ""}`), svg);
}

interface Tree { ids: number[]; up: Map<number, number>; label: (i: number) => string }

function treeOf(m: Machine, channel: number): Tree {
  const up = m.trees[channel] ?? [], parent = new Map<number, number>();
  if (!byNode(m)) { up.forEach((p, i) => parent.set(i, p)); return { ids: up.map((_, i) => i), up: parent, label: (i) => String(i) }; }
  const ids = [...new Set(m.nodeOf)];
  for (const n of ids) parent.set(n, -1);
  up.forEach((p, i) => { if (p >= 0 && m.nodeOf[p] !== m.nodeOf[i]) parent.set(m.nodeOf[i]!, m.nodeOf[p]!); });
  return { ids, up: parent, label: (i) => "n" + i };
}

export function drawTree(m: Machine, channel: number, moving: boolean): HTMLElement {
  const t = treeOf(m, channel);
  const kids = new Map<number, number[]>(), roots: number[] = [];
  for (const id of t.ids) { const p = t.up.get(id)!; if (p < 0 || p === undefined) roots.push(id); else (kids.get(p) ?? kids.set(p, []).get(p)!).push(id); }
  const place = new Map<number, [number, number]>();
  let next = 0, deepest = 0;
  const walk = (id: number, d: number): number => {
    deepest = Math.max(deepest, d);
    const xs = (kids.get(id) ?? []).map((k) => walk(k, d + 1));
    const x = xs.length ? xs.reduce((a, b) => a + b, 0) / xs.length : next++;
    place.set(id, [x, d]);
    return x;
  };
  for (const r of roots) walk(r, 0);
  const small = t.ids.length > 32, w = Math.max(SIZE, next * (small ? 14 : 34)), ht = Math.max(SIZE, (deepest + 1) * 36);
  const px = ([x, d]: [number, number]): [number, number] => [((x + 0.5) * w) / Math.max(1, next), 18 + (d * (ht - 36)) / Math.max(1, deepest)];
  const svg = s("svg", { viewBox: `0 0 ${w} ${ht}`, role: "img", class: "shape", "aria-label": `Tree of channel ${channel}, root ${roots.map(t.label).join(", ")}` });
  svg.append(arrow("tipt"));
  const r = small ? 4 : 11;
  for (const id of t.ids) {
    const p = t.up.get(id)!;
    if (p < 0) continue;
    const [x, y] = px(place.get(id)!), [X, Y] = px(place.get(p)!), len = Math.hypot(X - x, Y - y) || 1;
    const far = !byNode(m) && m.nodeOf[id] !== m.nodeOf[p];
    svg.append(s("line", { class: far ? "hop far" : "hop", x1: x, y1: y, x2: X - ((X - x) / len) * (r + 3), y2: Y - ((Y - y) / len) * (r + 3), "marker-end": "url(#tipt)" }));
    if (moving && !reduced() && t.ids.length <= 256) svg.append(s("circle", { class: "dot", r: small ? 2.5 : 4 }, s("animateMotion", { path: `M${x} ${y}L${X} ${Y}L${x} ${y}`, dur: "2.4s", begin: `${-(place.get(id)![1] * 0.4)}s`, repeatCount: "indefinite" })));
  }
  for (const id of t.ids) {
    const at = place.get(id);
    if (!at) continue;
    const [x, y] = px(at);
    svg.append(s("g", { class: "rank" + ((byNode(m) ? id : m.nodeOf[id]!) % 2 ? " odd" : "") + (t.up.get(id)! < 0 ? " root" : "") }, s("circle", { cx: x, cy: y, r }), small ? null : s("text", { x, y: y + 4, "text-anchor": "middle" }, t.label(id))));
  }
  return h("figure", {}, h("figcaption", {}, `Tree${byNode(m) ? ", by node" : ""}`), svg);
}

function arrow(id: string): SVGDefsElement {
  return s("defs", {}, s("marker", { id, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 6, markerHeight: 6, orient: "auto" }, s("path", { class: "tip-arrow", d: "M0 0L8 4L0 8z" })));
}

export function channelTable(m: Machine): HTMLElement {
  return below("Rings and trees of all channels, as a table", table("Rings and trees", ["channel", "ring, in order", "tree: rank, the rank above it"],
    m.rings.slice(0, 64).map((r, c) => [String(c), r.slice(0, 64).join(" → ") + (r.length > 64 ? " …" : ""), (m.trees[c] ?? []).slice(0, 64).map((p, i) => (p < 0 ? `${i} root` : `${i}→${p}`)).join(", ") + (r.length > 64 ? " …" : "")]), [0, 1, 2]));
}
