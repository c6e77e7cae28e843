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
#include "lines.h"
#include "reduce.h"

enum { SLOTS = 8, MAX_ENDS = 8, MAX_OPERANDS = 5, MAX_GROUPS = 16, MAX_WARPS = 20, MAX_RANKS = 8 };

// Bits of a primitive; plan.Do has the same.
enum { RECV = 1, REDUCE = 2, COPY = 4, SEND = 8, POST = 16, HOLD_RECV = 32, HOLD_SEND = 64, ACCUM = 128 };
// What is received lies in its place already; what is sent goes to its place.
enum { IN_PLACE = 256, TO_PLACE = 512 };

enum { IN = 1, OUT = 2 };
enum { LL = 0, LL128 = 1, SIMPLE = 2 };

// The tables; program.go has the same.
struct End {     // one end of a connection
  u64 slots;     // the FIFO, as mapped here
  u64 theirs;    // count of the other end, in memory of ours
  u64 ours;      // our count, where the other end waits for it
  u64 step;      // steps done; kept here between launches
  u64 slotBytes;
  u64 ready;     // sender: count of the receiver's launches; receiver: where that is
  u64 launch;    // launches so far; kept here
  u32 peer, sends;
  u64 seen;      // their count as last read
};
struct Op {
  u64 src, dst;  // offsets in the buffers
  u64 bytes;
  u32 slice;     // bytes of a slice
  u16 what;
  u8 srcBuf, dstBuf;
  u8 from[3], to[4]; // ends of the program
  u8 froms, tos, slices;
  u8 recvAhead, sendAhead;
  u32 recvOff, sendOff;
  u64 there;     // offset in the receivers' outputs, with TO_PLACE
};
struct Program {
  u64 ops, times;     // times: three of each slice, 0: nobody watches
  u32 count;          // of ops
  u32 phase;
  u32 warp, warps;
  u32 proto, sliceSteps;
  u32 barrier;        // first of its barriers: two of them if split, else one
  u32 split;          // the last two warps wait and announce
  u32 ends;
  u32 end[MAX_ENDS];  // in the rank's table
  u32 pad;
};
struct Lane {         // a block's programs
  u32 first, count;
};
struct Args {
  u64 lanes, programs, ends;
  u64 in, out;
  u64 outs[MAX_RANKS]; // of all ranks, as mapped here
  u64 stop;           // flag that ends all waits
  int n;              // ranks
  u32 direct;         // outs are given
};

ARGS(plan);

// Turn is one slice, as the waiting warp prepares it for the others.
struct Turn {
  u64 src[MAX_OPERANDS], dst[MAX_OPERANDS];
  u64 count[7];       // what to announce to each end, 0: nothing
  u64 at[7];
  u64 bytes, times;
  u32 srcs, dsts, announce;
  bool post, last;
};
struct Group {
  End ends[MAX_ENDS];
  Turn turn[2];
};
struct Shared {
  Group group[MAX_GROUPS];
};

// Crew is this thread's place in a program.
struct Crew {
  const Program* pr;
  Group* g;
  u32 thread, threads; // of the program
  Patience wait;
  METHOD void meet() const {
    if (pr->warps == 1) syncWarp();
    else syncSome(pr->barrier, threads);
  }
};

DEVICE u64 least(u64 a, u64 b) { return a < b ? a : b; }
DEVICE u64 buffer(const Args& a, u32 which) { return which == IN ? a.in : a.out; }
DEVICE u64 slotOf(const End& e, u64 ahead, u64 off) { return e.slots + (e.step + ahead) % SLOTS * e.slotBytes + off; }

// await waits until the other end's count is at least need.
DEVICE void await(End& e, u64 need, Patience& w) {
  if (e.seen >= need) return;
  while (loadRelaxed8(e.theirs) < need)
    if (w.over()) return;
  e.seen = loadAcquire8(e.theirs);
}

// --- Simple ---

// prepare waits for the slice's data and room, an end a lane, and describes it.
DEVICE void prepare(const Args& a, Crew& c, const Op& op, u64 off, Turn& t) {
  const u64 steps = c.pr->sliceSteps, froms = op.froms, ends = froms + op.tos;
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
    else if (accum) t.src[srcs++] = a.out + op.dst + off;
    else if (op.srcBuf) t.src[srcs++] = buffer(a, op.srcBuf) + op.src + off;
    if ((op.what & COPY) && !(direct && (op.what & IN_PLACE))) t.dst[dsts++] = a.out + op.dst + off;
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
  const Program& pr = *c.pr;
  const bool first = c.thread % WARP == 0;
  u32 k = 0;
  u64 times = pr.times;
  for (u32 o = 0; o < pr.count; o++) {
    const Op& op = ((const Op*)pr.ops)[o];
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
      syncSome(pr.barrier, c.threads);
    }
  }
  if (first) c.g->turn[k & 1].last = true;
  syncSome(pr.barrier, c.threads);
}

DEVICE void announcer(Crew& c) {
  const u32 lane = c.thread % WARP, others = c.threads - WARP;
  arriveSome(c.pr->barrier, c.threads);
  for (u32 k = 0;; k++) {
    syncSome(c.pr->barrier + 1, others);
    const Turn& now = c.g->turn[k & 1];
    if (now.last) return;
    u64 at = 0, count = 0;
    Turn all; // on a CPU one thread is all lanes
    if (WARP == 1) all = now;
    else if (lane < now.announce) at = now.at[lane], count = now.count[lane];
    const u64 times = now.times;
    syncWarp();
    arriveSome(c.pr->barrier, c.threads);
    if (WARP == 1) announce(all, 0);
    else if (count) storeRelease8(at, count);
    if (times && lane == 0) store8(times + 16, clockNow());
  }
}

template <typename T, int OP> DEVICE void worker(const Args& a, Crew& c) {
  const u32 workers = c.threads - 2 * WARP;
  for (u32 k = 0;; k++) {
    syncSome(c.pr->barrier, c.threads);
    const Turn& t = c.g->turn[k & 1];
    const bool last = t.last;
    if (!last) move<T, OP>(t, c.thread, workers, a.n);
    arriveSome(c.pr->barrier + 1, workers + WARP);
    if (last) return;
  }
}

// alone is a program whose warps do all in turn.
template <typename T, int OP> DEVICE void alone(const Args& a, Crew& c) {
  const Program& pr = *c.pr;
  u64 times = pr.times;
  Turn& t = c.g->turn[0];
  for (u32 o = 0; o < pr.count; o++) {
    const Op& op = ((const Op*)pr.ops)[o];
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

template <typename T, int OP> DEVICE void simple(const Args& a, Crew& c) {
  if (!c.pr->split) return alone<T, OP>(a, c);
  const u32 warp = c.thread / WARP, warps = c.pr->warps;
  if (warp + 2 < warps) worker<T, OP>(a, c);
  else if (warp + 2 == warps) waiter(a, c);
  else announcer(c);
}

// --- LL and LL128 ---

// owns tells whether this thread keeps the count of an end: always the same
// one, so that no barrier is needed from op to op.
DEVICE bool owns(const Crew& c, u32 end) { return end % c.threads == c.thread; }

// begin waits for room at all ends that the op sends to.
DEVICE void begin(Crew& c, const Op& op, u64 times) {
  if (times && c.thread == 0) store8(times, clockNow());
  for (u32 i = 0; i < op.tos; i++) {
    End& e = c.g->ends[op.to[i]];
    if (owns(c, op.to[i]) && e.step + 1 > SLOTS) await(e, e.step + 1 - SLOTS, c.wait);
  }
  c.meet();
  if (times && c.thread == 0) store8(times + 8, clockNow());
}

// finish gives back what was read. What this thread's warp has read is in its
// registers, and the barrier says so of the others: no fence is needed.
DEVICE void finish(Crew& c, const Op& op, u64 times) {
  c.meet();
  for (u32 i = 0; i < op.froms; i++) {
    End& e = c.g->ends[op.from[i]];
    if (owns(c, op.from[i])) storeRelaxed8(e.ours, ++e.step);
  }
  for (u32 i = 0; i < op.tos; i++)
    if (owns(c, op.to[i])) c.g->ends[op.to[i]].step++;
  if (times && c.thread == 0) store8(times + 16, clockNow());
}

template <typename T, int OP> DEVICE void lowLatency(const Args& a, Crew& c) {
  u64 times = c.pr->times;
  for (u32 o = 0; o < c.pr->count; o++) {
    const Op& op = ((const Op*)c.pr->ops)[o];
    begin(c, op, times);
    const u64 src = op.srcBuf ? buffer(a, op.srcBuf) + op.src : 0, dst = op.what & COPY ? a.out + op.dst : 0;
    for (u64 w = c.thread; 8 * w < op.bytes; w += c.threads) {
      u64 acc = src ? getWord(src, 8 * w, op.bytes) : 0;
      bool have = src != 0;
      for (u32 i = 0; i < op.froms; i++) {
        const End& e = c.g->ends[op.from[i]];
        const u32 flag = (u32)e.step + 1;
        u32 x, fx, y, fy;
        do loadLine(slotOf(e, 0, 16 * w), x, fx, y, fy);
        while ((fx != flag || fy != flag) && !c.wait.over());
        const u64 v = (u64)y << 32 | x;
        acc = have ? red8<T, OP>(v, acc) : v;
        have = true;
      }
      if (OP == AVG && (op.what & POST)) acc = fin8<T, OP>(acc, a.n);
      for (u32 i = 0; i < op.tos; i++) {
        const End& e = c.g->ends[op.to[i]];
        const u32 flag = (u32)e.step + 1;
        storeLine(slotOf(e, 0, 16 * w), (u32)acc, flag, (u32)(acc >> 32), flag);
      }
      if (dst) putWord(dst, 8 * w, op.bytes, acc);
    }
    finish(c, op, times);
    if (times) times += 24;
  }
}

template <typename T, int OP> DEVICE void lines(const Args& a, Crew& c) {
  u64 times = c.pr->times;
  for (u32 o = 0; o < c.pr->count; o++) {
    const Op& op = ((const Op*)c.pr->ops)[o];
    begin(c, op, times);
    const u64 src = op.srcBuf ? buffer(a, op.srcBuf) + op.src : 0, dst = op.what & COPY ? a.out + op.dst : 0;
    const u64 count = (op.bytes + 119) / 120;
    // All lanes of a warp take part in every round, also past the last line.
    for (u64 l0 = c.thread / WARP * LINES; l0 < count; l0 += c.threads / WARP * LINES) EACH_LANE(lane) {
      const u64 l = l0 + lineInWarp(), off = lineOff(l, lane);
      u64 x = 0, y = 0;
      bool have = src != 0;
      if (have) readLane(src, off, op.bytes, lane, 0, x, y);
      for (u32 i = 0; i < op.froms; i++) {
        const End& e = c.g->ends[op.from[i]];
        u64 vx, vy;
        const u64 at = slotOf(e, 0, 128 * least(l, count - 1)); // past the last line there are flags too
        do syncWarp();
        while (anyLane(!tryLane(at, lane, e.step + 1, vx, vy)) && !anyLane(c.wait.over()));
        x = have ? red8<T, OP>(vx, x) : vx;
        y = have ? red8<T, OP>(vy, y) : vy;
        have = true;
      }
      if (OP == AVG && (op.what & POST)) x = fin8<T, OP>(x, a.n), y = fin8<T, OP>(y, a.n);
      syncWarp();
      for (u32 i = 0; i < op.tos; i++) {
        const End& e = c.g->ends[op.to[i]];
        if (l < count) storeLine2(slotOf(e, 0, 128 * l) + 16 * lane, x, flagLane(lane) ? e.step + 1 : y);
      }
      if (dst) writeLane(dst, off, op.bytes, lane, x, y);
    }
    finish(c, op, times);
    if (times) times += 24;
  }
}

// run executes one program.
template <typename T, int OP> DEVICE void run(const Args& a, const Program* pr, Group& g) {
  Crew c = {pr, &g, tid() - pr->warp * WARP, pr->warps * WARP, patience(a.stop)};
  End* home = (End*)a.ends;
  for (u32 i = c.thread; i < pr->ends; i += c.threads) {
    End& e = g.ends[i] = home[pr->end[i]];
    e.seen = 0;
    e.launch++;
    if (!e.sends) storeRelaxed8(e.ready, e.launch);
  }
  c.meet();
  if (pr->proto == LL) lowLatency<T, OP>(a, c);
  else if (pr->proto == LL128) lines<T, OP>(a, c);
  else simple<T, OP>(a, c);
  c.meet();
  for (u32 i = c.thread; i < pr->ends; i += c.threads) home[pr->end[i]].step = g.ends[i].step, home[pr->end[i]].launch = g.ends[i].launch;
}

template <typename T, int OP> DEVICE void lane(const Args& a, Shared& s) {
  const Lane l = ((const Lane*)a.lanes)[block()];
  const Program* pr = (const Program*)a.programs + l.first;
  const u32 warp = tid() / WARP;
  for (u32 i = 0; i < l.count;) {
    u32 next = i;
    for (; next < l.count && pr[next].phase == pr[i].phase; next++)
      if (warp - pr[next].warp < pr[next].warps) run<T, OP>(a, pr + next, s.group[next - i]);
    i = next;
    if (i < l.count) syncBlock();
  }
}

#define KERNEL(T, tn, OP, on)                                        \
  GLOBAL BOUNDS(MAX_WARPS * WARP) void plan_##tn##_##on(Args a) {     \
    SHARED(Shared, s);                                               \
    lane<T, OP>(a, s);                                               \
  }

#ifdef MOVES
// Nothing is reduced: the element says only what moves at once off the grid.
KERNEL(U8, 1, SUM, move)
KERNEL(U32, 4, SUM, move)
#else
#define TYPE(T, tn) KERNEL(T, tn, SUM, sum) KERNEL(T, tn, PROD, prod) KERNEL(T, tn, MAX, max) KERNEL(T, tn, MIN, min) KERNEL(T, tn, AVG, avg)
TYPE(ELEM, NAME)
#endif
