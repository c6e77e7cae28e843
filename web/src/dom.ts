// Elements. Text becomes text nodes, never markup: names come from other people's files.

type Child = Node | string | number | null | undefined | false;
type Attrs = Record<string, string | number | boolean | ((e: never) => void) | null | undefined>;

/** A text in which no number is broken from its unit. */
const joined = (text: unknown): string => String(text).replace(/(\d) (?=(?:[µmn]?s|[GM]B\/s|Gb\/s|[KMG]?i?B|%|×)(?!\w))/g, "$1\u00a0");

/** A command line that ends its lines between words only: "--nodes" is not broken after its hyphens. Its text is what it was. */
export const unbroken = (line: string): (Node | string)[] => line.split(/( )/).map((word) => (word.length > 32 || !word.includes("-") ? word : h("span", { class: "nb" }, word)));

function fill<E extends Element>(el: E, attrs: Attrs, children: Child[]): E {
  for (const [k, v] of Object.entries(attrs)) {
    if (v === null || v === undefined || v === false) continue;
    if (typeof v === "function") el.addEventListener(k, v as EventListener);
    else el.setAttribute(k, v === true ? "" : String(v));
  }
  const text = el.matches("pre, code, td, th") ? String : joined; // what is copied stays as it is
  for (const c of children) if (c !== null && c !== undefined && c !== false) el.append(c instanceof Node ? c : text(c));
  return el;
}

export function h<K extends keyof HTMLElementTagNameMap>(tag: K, attrs: Attrs = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  return fill(document.createElement(tag), attrs, children);
}

export function s<K extends keyof SVGElementTagNameMap>(tag: K, attrs: Attrs = {}, ...children: Child[]): SVGElementTagNameMap[K] {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attrs, children);
}

export function replace(el: Element, ...children: Child[]): void {
  el.replaceChildren(...children.filter((c) => c !== null && c !== undefined && c !== false).map((c) => (c instanceof Node ? c : joined(c))));
}

/** A table in a frame of its own that scrolls and is reached by Tab. */
export function table(caption: string, head: Child[], rows: Child[][], left: number[] = [0]): HTMLElement {
  const cls = (i: number) => (left.includes(i) ? "t" : undefined);
  return h("div", { class: "wide", tabindex: 0, role: "region", "aria-label": caption },
    h("table", {}, h("caption", { class: "hidden" }, caption),
      h("thead", {}, h("tr", {}, ...head.map((c, i) => h("th", { class: cls(i), scope: "col" }, c)))),
      h("tbody", {}, ...rows.map((r) => h("tr", {}, ...r.map((c, i) => (c instanceof HTMLTableCellElement ? c : h("td", { class: cls(i) }, c))))))));
}

/** Numbers below a drawing. */
export function below(title: string, ...children: Child[]): HTMLDetailsElement {
  return h("details", {}, h("summary", {}, title), ...children);
}

export function download(name: string, type: string, data: BlobPart): void {
  const url = URL.createObjectURL(new Blob([data], { type }));
  const a = h("a", { href: url, download: name });
  document.body.append(a);
  a.click();
  a.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

const units: [number, string][] = [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]];
export function bytes(n: number): string {
  for (const [by, name] of units) if (n >= by) return `${+(n / by).toPrecision(4)} ${name}`;
  return `${n} B`;
}
/** A size as command lines have it: 8, 1K, 16M. */
export function short(n: number): string {
  for (const [by, name] of units) if (n >= by && n % by === 0) return `${n / by}${name[0]}`;
  return String(n);
}
export function micros(us: number): string {
  if (us >= 1e6) return `${(us / 1e6).toPrecision(3)} s`;
  if (us >= 1e3) return `${(us / 1e3).toPrecision(3)} ms`;
  return `${+us.toPrecision(3)} µs`;
}
export const percent = (x: number): string => `${Math.round(100 * x)} %`;
export const reduced = (): boolean => matchMedia("(prefers-reduced-motion: reduce)").matches;
