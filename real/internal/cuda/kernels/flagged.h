// Programs of LL and LL128: data that carry flags, op by op.
#pragma once
#include "plan.h"

// owns tells whether this thread keeps the count of an end: always the same
// one, so that no barrier is needed from op to op.
DEVICE bool owns(const Crew& c, u32 end) { return end % c.threads == c.thread; }

// Ahead is the part of the next op's row that a thread of the first warp
// carries into shared memory while the others are at work on this op.
enum { ROW = sizeof(Op) / 8, AHEAD = (ROW + WARP - 1) / WARP };
struct Ahead {
  u64 part[AHEAD];
  METHOD void load(const Crew& c, u32 o) {
    if (c.thread >= WARP || o >= c.count) return;
#pragma unroll
    for (u32 i = 0; i < AHEAD; i++)
      if (c.thread + i * WARP < ROW) part[i] = load8(c.ops + o * sizeof(Op) + 8 * (c.thread + i * WARP));
  }
  METHOD void store(const Crew& c, u32 o) const {
    if (c.thread >= WARP || o >= c.count) return;
#pragma unroll
    for (u32 i = 0; i < AHEAD; i++)
      if (c.thread + i * WARP < ROW) ((u64*)&c.g->ops[o & 1])[c.thread + i * WARP] = part[i];
  }
};

// begin waits for room at all ends that the op sends to. Who reads before the
// receiver has said so would only find its words not yet read: no fence.
DEVICE void begin(Crew& c, const Op& op, u64 times) {
  if (times && c.thread == 0) store8(times, clockNow());
  for (u32 i = 0; i < op.tos; i++) {
    End& e = c.g->ends[op.to[i]];
    if (!owns(c, op.to[i])) continue;
    while (e.seen + SLOTS < e.step + 1 && !c.wait.over()) e.seen = loadRelaxed8(e.theirs);
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

// words moves U words of a thread, those from w on that there are, of an LL op.
template <typename T, int OP, int U> DEVICE void words(Crew& c, const Op& op, u64 src, u64 dst, u64 w) {
  const u64 bytes = op.bytes;
  u64 at[U], acc[U] = {};
  bool have = src != 0;
#pragma unroll
  for (int k = 0; k < U; k++) at[k] = 8 * (w + k * (u64)c.threads);
  if (have) {
#pragma unroll
    for (int k = 0; k < U; k++)
      if (at[k] < bytes) acc[k] = getWord(src, at[k], bytes);
  }
  for (u32 i = 0; i < op.froms; i++) {
    const End& e = c.g->ends[op.from[i]];
    const u32 flag = (u32)e.step + 1;
    const u64 slot = slotOf(e, 0, 0);
    u64 v[U] = {};
    bool missing;
    do {
      missing = false;
#pragma unroll
      for (int k = 0; k < U; k++) {
        if (at[k] >= bytes) continue;
        u32 x, fx, y, fy;
        loadLine(slot + 2 * at[k], x, fx, y, fy);
        v[k] = (u64)y << 32 | x;
        missing |= fx != flag || fy != flag;
      }
    } while (missing && !c.wait.over());
#pragma unroll
    for (int k = 0; k < U; k++) acc[k] = have ? red8<T, OP>(v[k], acc[k]) : v[k];
    have = true;
  }
  if (OP == AVG && (op.what & POST)) {
#pragma unroll
    for (int k = 0; k < U; k++) acc[k] = fin8<T, OP>(acc[k], c.n);
  }
  for (u32 i = 0; i < op.tos; i++) {
    const End& e = c.g->ends[op.to[i]];
    const u32 flag = (u32)e.step + 1;
    const u64 slot = slotOf(e, 0, 0);
#pragma unroll
    for (int k = 0; k < U; k++)
      if (at[k] < bytes) storeLine(slot + 2 * at[k], (u32)acc[k], flag, (u32)(acc[k] >> 32), flag);
  }
  if (!dst) return;
#pragma unroll
  for (int k = 0; k < U; k++)
    if (at[k] < bytes) putWord(dst, at[k], bytes, acc[k]);
}

// lowLatency is an LL op. Large ones are polled two words a thread at a time, so
// that the way of a word is waited for half as often; four measured slower.
template <typename T, int OP> DEVICE void lowLatency(Crew& c, const Op& op) {
  const int U = 2;
  const u64 src = op.srcBuf ? (op.srcBuf == IN ? c.in : c.out) + op.src : 0, dst = op.what & COPY ? c.out + op.dst : 0;
  u64 w = c.thread;
  if (op.bytes > 8 * (u64)c.threads)
    for (; 8 * w < op.bytes; w += U * (u64)c.threads) words<T, OP, U>(c, op, src, dst, w);
  else if (8 * w < op.bytes) words<T, OP, 1>(c, op, src, dst, w);
}

// someLines moves a lane's words of U lines, a step apart, of an LL128 op. All
// lanes of a warp take part, also past the last line.
template <typename T, int OP, int U> DEVICE void someLines(Crew& c, const Op& op, u64 src, u64 dst, u64 l, u64 step, u64 count, u32 lane) {
  const u64 bytes = op.bytes;
  u64 x[U] = {}, y[U] = {};
  bool have = src != 0;
  if (have) {
#pragma unroll
    for (int k = 0; k < U; k++)
      if (l + k * step < count) readLane(src, lineOff(l + k * step, lane), bytes, lane, 0, x[k], y[k]);
  }
  for (u32 i = 0; i < op.froms; i++) {
    const End& e = c.g->ends[op.from[i]];
    const u64 slot = slotOf(e, 0, 0), flag = e.step + 1;
    u64 vx[U], vy[U];
    bool missing;
    do {
      missing = false;
      syncWarp();
#pragma unroll
      // Past the last line there are flags too: those of the last.
      for (int k = 0; k < U; k++) missing |= !tryLane(slot + 128 * least(l + k * step, count - 1), lane, flag, vx[k], vy[k]);
    } while (anyLane(missing) && !anyLane(c.wait.over()));
#pragma unroll
    for (int k = 0; k < U; k++) x[k] = have ? red8<T, OP>(vx[k], x[k]) : vx[k], y[k] = have ? red8<T, OP>(vy[k], y[k]) : vy[k];
    have = true;
  }
  if (OP == AVG && (op.what & POST)) {
#pragma unroll
    for (int k = 0; k < U; k++) x[k] = fin8<T, OP>(x[k], c.n), y[k] = fin8<T, OP>(y[k], c.n);
  }
  syncWarp();
  for (u32 i = 0; i < op.tos; i++) {
    const End& e = c.g->ends[op.to[i]];
    const u64 slot = slotOf(e, 0, 16 * lane), flag = e.step + 1;
#pragma unroll
    for (int k = 0; k < U; k++)
      if (l + k * step < count) storeLine2(slot + 128 * (l + k * step), x[k], flagLane(lane) ? flag : y[k]);
  }
  if (!dst) return;
#pragma unroll
  for (int k = 0; k < U; k++)
    if (l + k * step < count) writeLane(dst, lineOff(l + k * step, lane), bytes, lane, x[k], y[k]);
}

// lines is an LL128 op.
template <typename T, int OP> DEVICE void lines(Crew& c, const Op& op) {
  const int U = 2;
  const u64 src = op.srcBuf ? (op.srcBuf == IN ? c.in : c.out) + op.src : 0, dst = op.what & COPY ? c.out + op.dst : 0;
  const u64 count = (op.bytes + 119) / 120, step = c.threads / WARP * LINES;
  for (u64 l0 = c.thread / WARP * LINES; l0 < count; l0 += U * step) EACH_LANE(lane) {
    const u64 l = l0 + lineInWarp();
    if (l0 + step < count) someLines<T, OP, U>(c, op, src, dst, l, step, count, lane);
    else someLines<T, OP, 1>(c, op, src, dst, l, step, count, lane);
  }
}

// flagged runs the ops of an LL or LL128 program.
template <typename T, int OP, bool WORDS> DEVICE void flagged(Crew& c) {
  u64 times = c.times;
  for (u32 o = 0; o < c.count; o++) {
    const Op& op = c.g->ops[o & 1];
    Ahead next;
    next.load(c, o + 1);
    begin(c, op, times);
    if (WORDS) lowLatency<T, OP>(c, op);
    else lines<T, OP>(c, op);
    next.store(c, o + 1);
    finish(c, op, times);
    if (times) times += 24;
  }
}
