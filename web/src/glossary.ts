// Words of the glossary: where a part of the page has one, it is a button that says what it means.
import { h, unbroken } from "./dom";

export interface Word { word: string; aliases?: string[]; text: string; picture?: string; try: string; see?: string[] }

/** What is skipped: other controls, code, drawings, and cells that are only numbers. */
const skipped = "button, a, code, pre, svg, summary, label, option, select, textarea, h2, .key, .word";

export class Glossary {
  private readonly by = new Map<string, Word>();
  private readonly pattern: RegExp;
  private readonly card = h("div", { id: "word", popover: "auto", role: "dialog", "aria-label": "Meaning of a word" });

  constructor(words: Word[]) {
    for (const w of words) this.by.set(w.word.toLowerCase(), w);
    const names = [...this.by.keys()].sort((a, b) => b.length - a.length).map((n) => n.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
    this.pattern = new RegExp(`(?<![\\w-])(?:${names.join("|")})(?![\\w-])`, "gi");
    document.body.append(this.card);
  }

  /** Links the first mention of each word in a part. A name with capitals ("Simple") is not the word in small letters. */
  link(root: Element): void {
    const seen = new Set([...root.querySelectorAll(".word")].map((e) => this.by.get(e.textContent!.toLowerCase())?.word));
    const walk = document.createTreeWalker(root, NodeFilter.SHOW_TEXT, (n) => (n.parentElement?.closest(skipped) ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT));
    const nodes: Text[] = [];
    while (walk.nextNode()) nodes.push(walk.currentNode as Text);
    for (const node of nodes) {
      const parts: (Node | string)[] = [];
      let at = 0;
      for (const m of node.data.matchAll(this.pattern)) {
        const w = this.by.get(m[0].toLowerCase())!;
        if (seen.has(w.word) || (/[A-Z]/.test(w.word) && !/[A-Z]/.test(m[0]))) continue;
        seen.add(w.word);
        // No line ends between a word and the bracket or comma at it, as it may beside a button.
        const end = m.index + m[0].length, open = node.data[m.index - 1] === "(" ? "(" : "", close = /^[),.;:]*/.exec(node.data.slice(end))![0];
        parts.push(node.data.slice(at, m.index - open.length), h("span", { class: "nb" }, open, h("button", { type: "button", class: "word", click: () => this.show(w) }, m[0]), close));
        at = end + close.length;
      }
      if (parts.length) node.replaceWith(...parts, node.data.slice(at));
    }
  }

  show(w: Word): void {
    const see = (w.see ?? []).map((n) => this.by.get(n.replaceAll("-", " "))).filter((x) => x !== undefined);
    this.card.replaceChildren(
      h("h3", {}, w.word, w.aliases?.length ? h("small", {}, ` ${w.aliases.join(", ")}`) : null), h("p", {}, w.text.replaceAll("\n", " ")),
      w.picture ? h("pre", {}, w.picture.replace(/^ {14}/gm, "")) : "", h("p", { class: "soft" }, "See it: ", h("code", {}, ...unbroken(w.try))),
      see.length ? h("p", { class: "bar" }, ...see.map((x) => h("button", { type: "button", click: () => this.show(x) }, x.word))) : "");
    if (!this.card.matches(":popover-open")) this.card.showPopover();
  }
}
