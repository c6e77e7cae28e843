// Calls to the simulator in its worker, with parts, cancel, and a new worker where one
// does not answer a cancel in time.

export interface Failure { error: string; path?: string; cancelled?: boolean }
export class CallError extends Error {
  constructor(readonly failure: Failure) { super(failure.error); }
  get cancelled(): boolean { return this.failure.cancelled === true; }
}

interface Pending {
  resolve(answer: unknown): void;
  reject(err: Error): void;
  part?: (p: never) => void;
  again(): void; // asks once more, of a new worker
}

/** An answer with the parts before it, by method and query. */
export type Recorded = Record<string, { parts: unknown[]; answer: unknown }>;

/** How long the worker may take to end a cancelled call, milliseconds. */
const deaf = 4000;

export class Simulator {
  private worker!: Worker;
  private next = 0;
  private pending = new Map<number, Pending>();
  private files = new Map<string, Uint8Array>();
  private dead = false;

  /** What a first visit asks, answered by the same simulator when the page was built (build.mjs): the page shows it while the simulator loads. */
  private recorded = fetch("first.json").then((r) => (r.ok ? (r.json() as Promise<Recorded>) : {}), () => ({})).then((all) => all as Recorded);

  constructor() { this.start(); }

  private start(): void {
    this.dead = false;
    this.worker = new Worker("worker.js");
    this.worker.onmessage = (e) => this.receive(e.data);
    this.worker.onerror = (e) => this.ended(e.message || "worker.js does not load");
    for (const [name, data] of this.files) this.post(name, data).catch(() => undefined);
  }

  /** The simulator is gone: what was asked fails, what is asked next has a new one. */
  private ended(why: string): void {
    const asked = [...this.pending.values()];
    this.pending.clear();
    this.worker.terminate();
    this.dead = true;
    for (const p of asked) p.reject(new CallError({ error: `The simulator ended: ${why}` }));
  }

  private receive(m: { id: number; part?: never; answer?: unknown; failure?: Failure; ended?: boolean }): void {
    if (m.ended) return this.ended("this may need more memory than a browser gives; the command has no such limit");
    const p = this.pending.get(m.id);
    if (!p) return;
    if ("part" in m) return p.part?.(m.part!);
    this.pending.delete(m.id);
    // What the page cancels is no longer pending.
    if (m.failure) p.reject(new CallError({ ...m.failure, cancelled: false }));
    else p.resolve(m.answer);
  }

  call<T, P = unknown>(method: string, query: object, part?: (p: P) => void, signal?: AbortSignal): Promise<T> {
    const id = ++this.next;
    return new Promise<T>((resolve, reject) => {
      if (signal?.aborted) return reject(new CallError({ error: "cancelled", cancelled: true }));
      if (this.dead) this.start();
      const message = { id, method, query: JSON.stringify(query) };
      const again = () => this.worker.postMessage(message);
      this.pending.set(id, { resolve: resolve as (a: unknown) => void, reject, part: part as (p: never) => void, again });
      void this.recorded.then((all) => {
        const known = all[`${method} ${message.query}`];
        if (!this.pending.has(id)) return; // cancelled
        if (!known) return again();
        for (const p of known.parts) this.receive({ id, part: p as never });
        this.receive({ id, answer: known.answer });
      });
      signal?.addEventListener("abort", () => this.cancel(id), { once: true });
    });
  }

  private cancel(id: number): void {
    const p = this.pending.get(id);
    if (!p) return;
    this.pending.delete(id);
    p.reject(new CallError({ error: "cancelled", cancelled: true }));
    this.worker.postMessage({ id, cancel: true });
    this.watch();
  }

  private watching = false;
  /** Starts a new worker if this one does not answer soon. */
  private watch(): void {
    if (this.watching) return;
    this.watching = true;
    const id = ++this.next;
    const timer = setTimeout(() => {
      this.pending.delete(id);
      this.watching = false;
      const asked = [...this.pending.values()];
      this.worker.terminate();
      this.start();
      for (const p of asked) p.again();
    }, deaf);
    const answered = () => { clearTimeout(timer); this.watching = false; };
    this.pending.set(id, { resolve: answered, reject: answered, again: () => undefined });
    this.worker.postMessage({ id, method: "hello", query: '{"spec":{}}' });
  }

  put(name: string, data: Uint8Array): Promise<void> {
    if (this.dead) this.start();
    this.files.set(name, data);
    return this.post(name, data);
  }

  private post(name: string, data: Uint8Array): Promise<void> {
    const id = ++this.next;
    return new Promise((resolve, reject) => {
      const again = () => { const copy = data.slice().buffer; this.worker.postMessage({ id, put: name, data: copy }, [copy]); };
      this.pending.set(id, { resolve: () => resolve(), reject, again });
      again();
    });
  }
}
