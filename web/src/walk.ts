// One all_reduce from call to wire: stations with their text, what they are for the settings of the page, and
// a drawing.
import { h, reduced, replace, s, unbroken } from "./dom";
import type { Word } from "./glossary";
import { step as shade } from "./machine";

/** What a station is here: a sentence, and a drawing. */
export interface Here { text?: string; drawing?: Element | null }

let station = 0, at = 0, playing = false;

/** The stations; link explains the words of the text. */
export function walk(stations: Word[], here: (i: number) => Here, link: (el: Element) => void): HTMLElement {
  const head = h("h3", { tabindex: -1 }), text = h("p", { class: "text" }), now = h("p", { class: "now" }), drawing = h("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Drawing of the station" }), code = h("code", {});
  const go = (by: number) => { station = Math.max(0, Math.min(stations.length - 1, station + by)); show(); head.focus(); };
  const back = h("button", { type: "button", click: () => go(-1) }, "Back"), next = h("button", { type: "button", id: "walk-next", click: () => go(1) }, "Next");
  const show = () => {
    const w = stations[station]!, x = here(station);
    head.textContent = `${station + 1} of ${stations.length}: ${w.word}`;
    text.textContent = w.text.replaceAll("\n", " ");
    replace(now, x.text);
    drawing.replaceChildren(...(x.drawing ? [x.drawing] : []));
    drawing.hidden = !x.drawing;
    code.replaceChildren(...unbroken(w.try));
    back.disabled = station === 0;
    next.disabled = station === stations.length - 1;
    link(text);
  };
  show();
  return h("div", { class: "walk" }, h("div", { class: "bar" }, back, next), head, text, now, drawing, h("p", { class: "soft" }, "See it: ", code));
}

/** Contributions in each chunk of each rank after a step of a ring: reduce_scatter, then all_gather. */
export function contributions(n: number, step: number): { held: number[][]; moved: [number, number][] } {
  const held = Array.from({ length: n }, () => new Array<number>(n).fill(1));
  let moved: [number, number][] = [];
  for (let k = 1; k <= step; k++) {
    const before = held.map((row) => [...row]);
    moved = [];
    for (let r = 0; r < n; r++) {
      const to = (r + 1) % n, c = (((r - (k - 1)) % n) + n) % n;
      held[to]![c] = k < n ? before[r]![c]! + 1 : n;
      moved.push([to, c]);
    }
  }
  return { held, moved };
}

/** Chunks going round a ring of ranks, with a slider and a button that plays. */
export function chunks(ranks: number[]): HTMLElement {
  const n = ranks.length, last = 2 * (n - 1), cell = 44, left = 70;
  at = Math.min(at, last);
  const box = h("div", {}), out = h("output", { for: "walk-step" });
  const slider = h("input", { type: "range", id: "walk-step", min: 0, max: last, step: 1, "aria-label": "Step of the ring", input: () => { at = Number(slider.value); paint(); } });
  const play = h("button", { type: "button", "aria-pressed": "false", click: () => { playing = !playing; play.setAttribute("aria-pressed", String(playing)); if (playing) tick(); } }, "Play");
  const paint = () => {
    const { held, moved } = contributions(n, at);
    const what = at === 0 ? "each rank holds its own data" : at < n ? `reduce_scatter, step ${at} of ${n - 1}` : `all_gather, step ${at - n + 1} of ${n - 1}`;
    slider.value = String(at);
    slider.setAttribute("aria-valuetext", what);
    out.textContent = what;
    const svg = s("svg", { viewBox: `0 0 ${left + n * cell + 4} ${24 + n * 34}`, role: "img", class: "chunks", "aria-label": `Chunks of ${n} ranks: ${what}. The number in a cell is of how many ranks a chunk has the sum` });
    for (let c = 0; c < n; c++) svg.append(s("text", { x: left + c * cell + cell / 2, y: 15, "text-anchor": "middle", class: "axis" }, `chunk ${c}`.slice(n > 6 ? 6 : 0)));
    held.forEach((row, r) => {
      const y = 22 + r * 34;
      svg.append(s("text", { x: 0, y: y + 20 }, `rank ${ranks[r]}`));
      row.forEach((v, c) => {
        const k = shade((v - 1) / Math.max(1, n - 1)), got = moved.some(([a, b]) => a === r && b === c);
        svg.append(s("rect", { class: `fill-r${k}${got ? " got" : ""}`, x: left + c * cell + 2, y: y + 2, width: cell - 4, height: 28, rx: 4 }), s("text", { class: "ink" + k, x: left + c * cell + cell / 2, y: y + 20, "text-anchor": "middle" }, String(v)));
      });
    });
    box.replaceChildren(svg);
  };
  const tick = () => {
    if (!playing || !box.isConnected) { playing = false; return; }
    at = at >= last ? 0 : at + 1;
    paint();
    setTimeout(tick, reduced() ? 2500 : 900);
  };
  paint();
  return h("div", {}, h("div", { class: "bar" }, h("label", { for: "walk-step" }, "Step"), slider, out, play), box);
}
