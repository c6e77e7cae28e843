// A timeline on a canvas: zoom with the wheel, two fingers or + and −, move by dragging or
// with the arrows.
import { select } from "d3-selection";
import { zoom, zoomIdentity, type D3ZoomEvent, type ZoomTransform } from "d3-zoom";
import { below, h, micros, table } from "./dom";
import type { Timeline } from "./types";

const ROW = 18, LEFT = 210, TOP = 22;
const colours = ["--k-grey", "--card", "--k-blue", "--k-orange", "--k-green", "--k-purple", "--k-olive", "--k-teal"];

export function drawTimeline(t: Timeline): HTMLElement {
  const kinds = typeof t.kind === "string" ? Uint8Array.from(atob(t.kind), (c) => c.charCodeAt(0)) : Uint8Array.from(t.kind);
  const processes = [...new Set(t.tracks.map((x) => x.process))];
  const choose = h("select", { "aria-label": "Tracks" }, h("option", { value: "" }, "all tracks"), ...processes.map((p) => h("option", { value: p }, p)));
  const canvas = h("canvas", { id: "timeline", tabindex: 0, role: "img", "aria-label": `Timeline of ${t.title}: ${t.tracks.length} tracks, ${micros(t.endNs / 1000)}. Plus and minus zoom, arrows move; the sums are in the table below` });
  const tip = h("div", { class: "tip", hidden: true });
  const frame = h("div", { class: "timeline" }, canvas, tip);
  let tr: ZoomTransform = zoomIdentity;
  let rows: number[] = [];
  let row = new Int32Array(t.tracks.length);
  const byTrack: number[][] = t.tracks.map(() => []);
  t.track.forEach((k, i) => byTrack[k]!.push(i));

  const pick = () => {
    const p = choose.value;
    rows = t.tracks.map((_, i) => i).filter((i) => !p || t.tracks[i]!.process === p).slice(0, 400);
    row = new Int32Array(t.tracks.length).fill(-1);
    rows.forEach((k, i) => { row[k] = i; });
    canvas.style.height = `${TOP + rows.length * ROW + 4}px`;
    paint();
  };
  const width = () => frame.clientWidth || 800;
  const left = () => (width() < 560 ? 116 : LEFT);
  const scale = (ns: number) => left() + tr.applyX((ns / Math.max(1, t.endNs)) * (width() - left()));

  function paint(): void {
    const w = width(), ht = TOP + rows.length * ROW + 4, dpr = Math.min(2, devicePixelRatio || 1);
    canvas.width = w * dpr;
    canvas.height = ht * dpr;
    const c = canvas.getContext("2d")!, css = getComputedStyle(document.documentElement), v = (n: string) => css.getPropertyValue(n).trim();
    c.scale(dpr, dpr);
    c.clearRect(0, 0, w, ht);
    c.font = "12px system-ui, sans-serif";
    axis(c, w, ht, v);
    const fill = colours.map((k) => v(k)), on = v("--on-kind"), fg = v("--fg"), edge = v("--edge");
    const hatch = hatched(c, edge, v("--card"));
    c.save();
    c.beginPath();
    c.rect(left(), 0, w - left(), ht);
    c.clip();
    for (const k of rows) {
      const y = TOP + row[k]! * ROW;
      let lastX = -1;
      for (const i of byTrack[k]!) {
        const a = scale(t.start[i]!), b = scale(t.start[i]! + t.dur[i]!);
        if (b < left() || a > w) continue;
        const kind = kinds[i]!, wide = Math.max(0.6, b - a);
        if (wide < 1 && Math.floor(a) === lastX) continue;
        lastX = Math.floor(a);
        c.fillStyle = kind === 1 ? hatch : fill[kind]!;
        c.fillRect(a, y + 1, wide, ROW - 3);
        const name = t.names[t.name[i]!]!;
        if (wide > name.length * 6.6 + 6) { c.fillStyle = kind === 1 ? fg : on; c.fillText(name, Math.max(a, left()) + 4, y + 12.5, wide - 6); }
      }
    }
    c.restore();
  }

  function axis(c: CanvasRenderingContext2D, w: number, ht: number, v: (n: string) => string): void {
    const us = t.endNs / 1000 / tr.k, want = us / Math.max(2, (w - left()) / 80), p = 10 ** Math.floor(Math.log10(want || 1));
    const stepUs = [1, 2, 5, 10].map((m) => m * p).find((x) => x >= want) ?? p;
    const from = (tr.invertX(0) / (w - left())) * t.endNs / 1000;
    c.strokeStyle = v("--line");
    c.fillStyle = v("--soft");
    for (let x = Math.max(0, Math.floor(from / stepUs) * stepUs); x <= from + us + stepUs; x += stepUs) {
      const px = scale(x * 1000);
      if (px < left() || px > w) continue;
      c.beginPath(); c.moveTo(px, TOP - 4); c.lineTo(px, ht); c.stroke();
      c.fillText(micros(+x.toPrecision(6)), px + 3, 12);
    }
    let process = "";
    rows.forEach((k, i) => {
      const y = TOP + i * ROW, x = t.tracks[k]!;
      c.fillStyle = v("--fg");
      let text = x.thread || x.process;
      if (x.process !== process) { process = x.process; c.strokeStyle = v("--edge"); c.beginPath(); c.moveTo(0, y - 0.5); c.lineTo(w, y - 0.5); c.stroke(); if (!choose.value) text = `${shortProcess(process)}: ${text}`; }
      c.save(); c.beginPath(); c.rect(0, y, left() - 6, ROW); c.clip(); c.fillText(fit(c, text, left() - 8), 2, y + 13); c.restore();
    });
  }

  const z = zoom<HTMLCanvasElement, unknown>().scaleExtent([1, 20000]).filter((e: Event) => !(e instanceof WheelEvent) || e.ctrlKey || e.shiftKey || document.activeElement === canvas)
    .on("zoom", (e: D3ZoomEvent<HTMLCanvasElement, unknown>) => { tr = e.transform; const w = width() - left(); tr = zoomIdentity.translate(Math.min(0, Math.max(w * (1 - tr.k), tr.x)), 0).scale(tr.k); paint(); });
  const sel = select(canvas).call(z);
  canvas.style.touchAction = "pan-y";
  canvas.addEventListener("keydown", (e) => {
    const by = { "+": 1.5, "=": 1.5, "-": 1 / 1.5 }[e.key];
    if (by) { sel.call(z.scaleBy, by, [left() + (width() - left()) / 2, 0]); e.preventDefault(); }
    else if (e.key === "ArrowLeft" || e.key === "ArrowRight") { sel.call(z.translateBy, (e.key === "ArrowLeft" ? 80 : -80) / tr.k, 0); e.preventDefault(); }
    else if (e.key === "0") { sel.call(z.transform, zoomIdentity); e.preventDefault(); }
  });
  canvas.addEventListener("pointermove", (e) => {
    const box = canvas.getBoundingClientRect(), x = e.clientX - box.left, k = rows[Math.floor((e.clientY - box.top - TOP) / ROW)];
    tip.hidden = true;
    if (k === undefined || x < left()) return;
    let hit = -1;
    for (const i of byTrack[k]!) if (scale(t.start[i]!) <= x && x <= Math.max(scale(t.start[i]! + t.dur[i]!), scale(t.start[i]!) + 2)) hit = i;
    if (hit < 0) return;
    tip.replaceChildren(h("b", {}, t.names[t.name[hit]!]!), h("div", {}, `${micros(t.dur[hit]! / 1000)} from ${micros(t.start[hit]! / 1000)}`), h("div", {}, t.tracks[k]!.thread));
    tip.hidden = false;
    tip.style.left = `${Math.min(x + 12, box.width - 230)}px`;
    tip.style.top = `${e.clientY - box.top + 14}px`;
  });
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
  choose.addEventListener("change", () => pick());
  new ResizeObserver(() => paint()).observe(frame);
  document.addEventListener("themechange", paint);
  const press = (label: string, name: string, by: () => void) => h("button", { type: "button", "aria-label": name, click: by }, label);
  const bar = h("div", { class: "bar" }, h("label", {}, "Show ", choose), press("+", "Zoom in", () => sel.call(z.scaleBy, 2)), press("−", "Zoom out", () => sel.call(z.scaleBy, 0.5)), press("Whole", "Whole timeline", () => sel.call(z.transform, zoomIdentity)));
  const busiest = processes.find((p) => p.startsWith("rank")) ?? "";
  if (processes.length > 3 && busiest) choose.value = busiest;
  queueMicrotask(pick);
  return h("div", {}, bar, key(t), frame, t.left ? h("p", { class: "soft" }, `${t.left.toLocaleString("en")} slices are not drawn; the trace has them all.`) : null, sums(t, kinds));
}

/** Diagonal lines on a ground: waiting, in place of the fill of what works. */
function hatched(c: CanvasRenderingContext2D, ink: string, ground: string): CanvasPattern | string {
  const tile = document.createElement("canvas"), t = tile.getContext("2d")!;
  tile.width = tile.height = 6;
  t.fillStyle = ground;
  t.fillRect(0, 0, 6, 6);
  t.strokeStyle = ink;
  t.lineWidth = 1.2;
  for (const d of [-6, 0, 6]) { t.beginPath(); t.moveTo(d, 6); t.lineTo(d + 6, 0); t.stroke(); }
  return c.createPattern(tile, "repeat") ?? ground;
}

/** A text without as much of its beginning as has no room: lanes differ at their ends. */
function fit(c: CanvasRenderingContext2D, text: string, width: number): string {
  if (c.measureText(text).width <= width) return text;
  let from = 1;
  while (from < text.length && c.measureText("…" + text.slice(from)).width > width) from++;
  return "…" + text.slice(from).trimStart();
}

const shortProcess = (p: string) => p.split(" · ")[0]!;

function key(t: Timeline): HTMLElement {
  return h("p", { class: "key" }, ...t.kinds.map((k, i) => h("span", {}, h("i", { class: "sw sw" + i }), k)));
}

function sums(t: Timeline, kinds: Uint8Array): HTMLElement {
  const sum = new Map<string, number>();
  t.track.forEach((k, i) => { const key = t.tracks[k]!.process + "\0" + t.kinds[kinds[i]!]!; sum.set(key, (sum.get(key) ?? 0) + t.dur[i]!); });
  return below("Time by process and kind, as a table", table("Time by process and kind", ["process", "kind", "sum"], [...sum].sort((a, b) => b[1] - a[1]).slice(0, 60).map(([key, ns]) => { const [p, k] = key.split("\0"); return [p, k, micros(ns / 1000)]; }), [0, 1]));
}
