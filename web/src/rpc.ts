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
  message?: { id: number; method: string; query: string }; // is sent again to a new worker
}

/** How long the worker may take to end a cancelled call, milliseconds. */
const deaf = 4000;

export class Simulator {
  private worker!: Worker;
  private next = 0;
  private pending = new Map<number, Pending>();
  private files = new Map<string, Uint8Array>();

  constructor() { this.start(); }

  private start(): void {
    this.worker = new Worker("worker.js");
    this.worker.onmessage = (e) => this.receive(e.data);
    this.worker.onerror = (e) => { for (const p of this.pending.values()) p.reject(new CallError({ error: "The simulator ended: " + e.message })); this.pending.clear(); };
  }

  private receive(m: { id: number; part?: never; answer?: unknown; failure?: Failure }): void {
    const p = this.pending.get(m.id);
    if (!p) return;
    if ("part" in m) return p.part?.(m.part!);
    this.pending.delete(m.id);
    if (m.failure) p.reject(new CallError(m.failure));
    else p.resolve(m.answer);
  }

  call<T, P = unknown>(method: string, query: object, part?: (p: P) => void, signal?: AbortSignal): Promise<T> {
    const id = ++this.next;
    return new Promise<T>((resolve, reject) => {
      if (signal?.aborted) return reject(new CallError({ error: "cancelled", cancelled: true }));
      const message = { id, method, query: JSON.stringify(query) };
      this.pending.set(id, { resolve: resolve as (a: unknown) => void, reject, part: part as (p: never) => void, message });
      this.worker.postMessage(message);
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
      this.worker.terminate();
      this.start();
      for (const [name, data] of this.files) void this.post(name, data);
      for (const p of this.pending.values()) if (p.message) this.worker.postMessage(p.message);
    }, deaf);
    this.pending.set(id, { resolve: () => { clearTimeout(timer); this.watching = false; }, reject: () => { clearTimeout(timer); this.watching = false; } });
    this.worker.postMessage({ id, method: "hello", query: '{"spec":{}}' });
  }

  put(name: string, data: Uint8Array): Promise<void> {
    this.files.set(name, data);
    return this.post(name, data);
  }

  private post(name: string, data: Uint8Array): Promise<void> {
    const id = ++this.next;
    return new Promise((resolve, reject) => {
      this.pending.set(id, { resolve: () => resolve(), reject });
      const copy = data.slice().buffer;
      this.worker.postMessage({ id, put: name, data: copy }, [copy]);
    });
  }

  has(name: string): boolean { return this.files.has(name); }
}
