// Runs the programs of a plan: one block a channel, whose warps are dealt to
// the programs that run on the channel at the same time. A program is a table
// of primitives; a connection is a FIFO of SLOTS slots in the receiver's
// memory, with two counts of steps: done by the sender (tail, which the
// receiver waits for) and done by the receiver (head, which the sender waits
// for). Either lies where it is waited for.
//
//   Simple  data in plain slots. A slice is announced by the tail behind a
//           fence. Two warps beside the workers wait for the next slice and
//           announce the last one while the workers move this one.
//   LL      words that carry a flag each, 8 of 16 bytes are data.
//   LL128   lines of 128 bytes that carry one flag.
//
// A Simple slice whose receiver only stores it goes straight to its place in
// the receiver's output instead: the sender knows by a third count (ready) that
// the receiver's part of the operation has begun, so that the place is free.
//
// Counts go on from launch to launch, so that a replayed graph needs no new
// arguments.
#include "flagged.h"

// --- Simple ---

// prepare waits for the slice's data and room, an end a lane, and describes it.
DEVICE void prepare(const Args& a, Crew& c, const Op& op, u64 off, Turn& t) {
  const u64 steps = c.sliceSteps, froms = op.froms, ends = froms + op.tos;
  const bool accum = op.what & ACCUM, direct = a.direct;
  for (u64 i = c.thread % WARP; i < ends; i += WARP) {
    const bool recv = i < froms;
    End& e = c.g->ends[recv ? op.from[i] : op.to[i - froms]];
    const u64 ahead = recv ? op.recvAhead : op.sendAhead;
    const u64 need = e.step + ahead + steps;
    await(e, recv ? need : need < SLOTS ? 0 : need - SLOTS, c.wait);
    u64 at = slotOf(e, ahead, recv ? op.recvOff : op.sendOff);
    if (direct && recv && (op.what & IN_PLACE)) at = a.out + op.dst + off;
    if (direct && !recv && (op.what & TO_PLACE)) {
      while (e.ready && loadRelaxed8(e.ready) < e.launch && !c.wait.over()) {
      }
      e.ready = 0; // once a launch
      at = a.outs[e.peer] + op.there + off;
    }
    if (recv) t.src[i] = at;
    else t.dst[i - froms] = at;
    if (accum && !recv && i == froms) t.src[froms] = at;
    t.at[i] = e.ours;
    t.count[i] = 0;
    if (!(op.what & (recv ? HOLD_RECV : HOLD_SEND))) t.count[i] = e.step += steps;
  }
  if (c.thread % WARP == 0) {
    u32 srcs = froms, dsts = op.tos;
    if (accum && op.tos) srcs++;
    else {
      if (op.srcBuf) t.src[srcs++] = buffer(a, op.srcBuf) + op.src + off;
      if (accum) t.src[srcs++] = buffer(a, op.dstBuf) + op.dst + off;
    }
    if ((op.what & COPY) && !(direct && (op.what & IN_PLACE))) t.dst[dsts++] = buffer(a, op.dstBuf) + op.dst + off;
    t.srcs = srcs;
    t.dsts = dsts;
    t.announce = ends;
    t.bytes = least(op.slice, op.bytes - least(off, op.bytes));
    t.post = op.what & POST;
    t.last = false;
  }
}

// anyPacks moves packs of any number of operands and places, this thread's
// from at on.
template <typename T, int OP> SLOW void anyPacks(const Turn& t, u64 at, u64 n, u32 threads, int ranks) {
  for (; at + 16 <= n; at += 16 * (u64)threads) {
    Pack v, x;
    loadLine2(t.src[0] + at, v.a, v.b);
    for (u32 i = 1; i < t.srcs; i++) {
      loadLine2(t.src[i] + at, x.a, x.b);
      v = red16<T, OP>(v, x);
    }
    if (OP == AVG && t.post) v = fin16<T, OP>(v, ranks);
    for (u32 i = 0; i < t.dsts; i++) store16(t.dst[i] + at, v);
  }
}

// packs moves whole packs of 16 bytes: NS operands reduced into ND places.
template <typename T, int OP, int NS, int ND, int U> DEVICE void packs(const Turn& t, u64 n, u32 thread, u32 threads, int ranks) {
  const u64 step = 16 * (u64)threads;
  u64 src[NS], dst[ND], at = 16 * (u64)thread;
#pragma unroll
  for (int i = 0; i < NS; i++) src[i] = t.src[i];
#pragma unroll
  for (int i = 0; i < ND; i++) dst[i] = t.dst[i];
  for (; at + (U - 1) * step + 16 <= n; at += U * step) {
    Pack v[U], x[U];
#pragma unroll
    for (int k = 0; k < U; k++) loadLine2(src[0] + at + k * step, v[k].a, v[k].b);
#pragma unroll
    for (int i = 1; i < NS; i++) {
#pragma unroll
      for (int k = 0; k < U; k++) loadLine2(src[i] + at + k * step, x[k].a, x[k].b);
#pragma unroll
      for (int k = 0; k < U; k++) v[k] = red16<T, OP>(v[k], x[k]);
    }
    if (OP == AVG && t.post) {
#pragma unroll
      for (int k = 0; k < U; k++) v[k] = fin16<T, OP>(v[k], ranks);
    }
#pragma unroll
    for (int i = 0; i < ND; i++)
#pragma unroll
      for (int k = 0; k < U; k++) store16(dst[i] + at + k * step, v[k]);
  }
  anyPacks<T, OP>(t, at, n, threads, ranks);
}

// pieces moves what lies off the grid of packs, an element at a time.
template <typename T, int OP> SLOW void pieces(const Turn& t, u64 from, u32 thread, u32 threads, int ranks) {
  for (u64 at = from + sizeof(T) * thread; at + sizeof(T) <= t.bytes; at += sizeof(T) * threads) {
    T v = T::now(t.src[0] + at);
    for (u32 i = 1; i < t.srcs; i++) v = red1<T, OP>(v, T::now(t.src[i] + at));
    if (OP == AVG && t.post) v = fin1<T, OP>(v, ranks);
    for (u32 i = 0; i < t.dsts; i++) *(T*)(t.dst[i] + at) = v;
  }
}

// move does the work of a slice: out of line, as it has two callers.
template <typename T, int OP> SLOW void move(const Turn& t, u32 thread, u32 threads, int ranks) {
  if (t.srcs == 0 || t.dsts == 0) return;
  u64 all = 0, done = 0;
  for (u32 i = 0; i < t.srcs; i++) all |= t.src[i];
  for (u32 i = 0; i < t.dsts; i++) all |= t.dst[i];
  if (all % 16 == 0) {
    const int U = sizeof(T) >= 4 ? 4 : 2;
    done = t.bytes / 16 * 16;
    switch (t.srcs * 8 + t.dsts) {
      case 1 * 8 + 1: packs<T, OP, 1, 1, 8>(t, done, thread, threads, ranks); break;
      case 1 * 8 + 2: packs<T, OP, 1, 2, 8>(t, done, thread, threads, ranks); break;
      case 2 * 8 + 1: packs<T, OP, 2, 1, U>(t, done, thread, threads, ranks); break;
      case 2 * 8 + 2: packs<T, OP, 2, 2, U>(t, done, thread, threads, ranks); break;
      default: anyPacks<T, OP>(t, 16 * (u64)thread, done, threads, ranks);
    }
  }
  pieces<T, OP>(t, done, thread, threads, ranks);
}

// announce tells every end its new count, an end a lane.
DEVICE void announce(const Turn& t, u32 lane) {
  for (u32 i = lane; i < t.announce; i += WARP)
    if (t.count[i]) storeRelease8(t.at[i], t.count[i]);
}

// waiter leads the program through its slices.
DEVICE void waiter(const Args& a, Crew& c) {
  const bool first = c.thread % WARP == 0;
  u32 k = 0;
  u64 times = c.times;
  for (u32 o = 0; o < c.count; o++) {
    const Op& op = ((const Op*)c.ops)[o];
    for (u32 s = 0; s < op.slices; s++, k++) {
      Turn& t = c.g->turn[k & 1];
      const u64 began = times && first ? clockNow() : 0;
      syncWarp();
      prepare(a, c, op, (u64)s * op.slice, t);
      syncWarp();
      if (first) {
        t.times = times;
        if (times) store8(times, began), store8(times + 8, clockNow());
      }
      if (times) times += 24;
      syncSome(c.barrier, c.threads);
    }
  }
  if (first) c.g->turn[k & 1].last = true;
  syncSome(c.barrier, c.threads);
}

DEVICE void announcer(Crew& c) {
  const u32 lane = c.thread % WARP, others = c.threads - WARP;
  arriveSome(c.barrier, c.threads);
  for (u32 k = 0;; k++) {
    syncSome(c.barrier + 1, others);
    const Turn& now = c.g->turn[k & 1];
    if (now.last) return;
    u64 at = 0, count = 0;
    Turn all; // on a CPU one thread is all lanes
    if (WARP == 1) all = now;
    else if (lane < now.announce) at = now.at[lane], count = now.count[lane];
    const u64 times = now.times;
    syncWarp();
    arriveSome(c.barrier, c.threads);
    if (WARP == 1) announce(all, 0);
    else if (count) storeRelease8(at, count);
    if (times && lane == 0) store8(times + 16, clockNow());
  }
}

template <typename T, int OP> DEVICE void worker(const Args& a, Crew& c) {
  const u32 workers = c.threads - 2 * WARP;
  for (u32 k = 0;; k++) {
    syncSome(c.barrier, c.threads);
    const Turn& t = c.g->turn[k & 1];
    const bool last = t.last;
    if (!last) move<T, OP>(t, c.thread, workers, a.n);
    arriveSome(c.barrier + 1, workers + WARP);
    if (last) return;
  }
}

// alone is a program whose warps do all in turn.
template <typename T, int OP> DEVICE void alone(const Args& a, Crew& c) {
  u64 times = c.times;
  Turn& t = c.g->turn[0];
  for (u32 o = 0; o < c.count; o++) {
    const Op& op = ((const Op*)c.ops)[o];
    for (u32 s = 0; s < op.slices; s++) {
      if (times && c.thread == 0) store8(times, clockNow());
      if (c.thread < WARP) prepare(a, c, op, (u64)s * op.slice, t);
      c.meet();
      if (times && c.thread == 0) store8(times + 8, clockNow());
      move<T, OP>(t, c.thread, c.threads, a.n);
      c.meet();
      if (c.thread < WARP) announce(t, c.thread);
      if (times && c.thread == 0) store8(times + 16, clockNow());
      if (times) times += 24;
      if (c.thread < WARP) syncWarp();
    }
  }
}

template <typename T, int OP> DEVICE void simple(const Args& a, Crew& c, bool split) {
  if (!split) return alone<T, OP>(a, c);
  const u32 warp = c.thread / WARP;
  if (warp + 2 < c.warps) worker<T, OP>(a, c);
  else if (warp + 2 == c.warps) waiter(a, c);
  else announcer(c);
}

// --- programs ---

// apart is flagged as a function of its own, which gets what it needs by value:
// its registers would else be taken from those that move Simple slices.
template <typename T, int OP, bool WORDS>
SLOW void apart(Group* g, u32 thread, u32 warps, u32 barrier, u32 count, u64 ops, u64 times, u64 in, u64 out, u64 stop, int n) {
  Crew c = {g, thread, warps * WARP, warps, barrier, count, 1, ops, times, in, out, n, patience(stop)};
  flagged<T, OP, WORDS>(c);
}

// execute runs a program in a kernel for all protocols (ANY) or for one.
template <typename T, int OP, int KIND> DEVICE void execute(const Args& a, Crew& c, u32 proto, bool split) {
  if (KIND == LL) flagged<T, OP, true>(c);
  else if (KIND == LL128) flagged<T, OP, false>(c);
  else if (proto == SIMPLE) simple<T, OP>(a, c, split);
  else if (proto == LL) apart<T, OP, true>(c.g, c.thread, c.warps, c.barrier, c.count, c.ops, c.times, a.in, a.out, a.stop, a.n);
  else apart<T, OP, false>(c.g, c.thread, c.warps, c.barrier, c.count, c.ops, c.times, a.in, a.out, a.stop, a.n);
}

// run executes one program.
template <typename T, int OP, int KIND> DEVICE void run(const Args& a, const Program* pr, Group& g) {
  Crew c = {&g, tid() - pr->warp * WARP, pr->warps * WARP, pr->warps, pr->barrier, pr->count, pr->sliceSteps,
            pr->ops, pr->times, a.in, a.out, a.n, patience(a.stop)};
  const u32 proto = KIND == ANY ? pr->proto : KIND, ends = pr->ends;
  const bool split = pr->split;
  End* home = (End*)a.ends;
  Ahead first;
  if (proto != SIMPLE) first.load(c, 0);
  for (u32 i = c.thread; i < ends; i += c.threads) {
    End& e = g.ends[i] = home[pr->end[i]];
    e.seen = 0;
    e.launch++;
    if (!e.sends) storeRelaxed8(e.ready, e.launch);
  }
  if (proto != SIMPLE) first.store(c, 0);
  c.meet();
  execute<T, OP, KIND>(a, c, proto, split);
  c.meet();
  for (u32 i = c.thread; i < ends; i += c.threads) home[pr->end[i]].step = g.ends[i].step, home[pr->end[i]].launch = g.ends[i].launch;
}

template <typename T, int OP, int KIND> DEVICE void lane(const Args& a, Shared& s) {
  if (block() >= a.used) return;
  const Lane l = a.lanes[block()];
  const Program* pr = (const Program*)a.programs + l.first;
  const u32 warp = tid() / WARP;
  for (u32 i = 0; i < l.count;) {
    u32 next = i;
    for (; next < l.count && pr[next].phase == pr[i].phase; next++)
      if (warp - pr[next].warp < pr[next].warps) run<T, OP, KIND>(a, pr + next, s.group[next - i]);
    i = next;
    if (i < l.count) syncBlock();
  }
}

#define ONE(T, OP, kind, KIND, tn, on)                                \
  GLOBAL BOUNDS(MAX_WARPS * WARP) void kind##_##tn##_##on(Args a) {    \
    SHARED(Shared, s);                                                \
    lane<T, OP, KIND>(a, s);                                          \
  }
// Plans of LL or LL128 alone have kernels of their own: the smaller a kernel and
// the fewer its registers, the quicker it begins.
#ifdef FLAGGED
#define KERNEL(T, tn, OP, on) ONE(T, OP, words, LL, tn, on) ONE(T, OP, lines, LL128, tn, on)
#else
#define KERNEL(T, tn, OP, on) ONE(T, OP, plan, ANY, tn, on)
#endif

#ifdef MOVES
// Nothing is reduced: the element says only what moves at once off the grid.
KERNEL(U8, 1, SUM, move)
KERNEL(U32, 4, SUM, move)
#else
#define TYPE(T, tn) KERNEL(T, tn, SUM, sum) KERNEL(T, tn, PROD, prod) KERNEL(T, tn, MAX, max) KERNEL(T, tn, MIN, min) KERNEL(T, tn, AVG, avg)
TYPE(ELEM, NAME)
#endif
