// Free algorithms: collectives that use every link of an NVLink domain at once
// instead of NCCL's rings. Three shapes:
//
//   one-shot  every rank writes its whole input, word and flag together (LL),
//             into every peer's arena; everyone reduces everything. One hop.
//   two-shot  chunk j goes to rank j in 128-byte lines that carry their own
//             flag (LL128); rank j reduces it and sends it to all. Two hops.
//   direct    behind a barrier, rank j reads chunk j of every peer's input,
//             reduces it and writes it into every peer's output. No copies.
//
// Flags carry the number of the call (epoch), which every rank counts in its
// own memory, so that a replayed CUDA graph needs no new arguments. The two
// halves of the arena alternate: a rank can be at most one call ahead of a
// peer, because it cannot finish a call without data of that call from every
// peer. All ranks use the same grid for the same call.
#include "reduce.h"

enum { MAXR = 8, MAXB = 256, WORD_HALF = 8 << 20 };

// Args is mirrored by freeArgs in free.go.
struct Args {
  u64 arena[MAXR];  // by rank: this rank's own, and the peers' as mapped here
  u64 in[MAXR];     // inputs by rank; only the own one unless direct
  u64 out[MAXR];    // outputs by rank; only the own one unless direct
  u64 bytes;        // of one rank's part: all_reduce: the whole buffer
  u64 chunk;        // bytes of one rank's share of an all_reduce, a multiple of 16
  u64 half;         // bytes of one half of the line area
  int rank, n;
  int aligned;      // all user pointers are 16-byte aligned
  int pad;
};

// Arena layout: epochs, start flags, end flags, word areas, line areas.
DEVICE u64 epochOf(u64 arena, u32 b) { return arena + 4 * b; }
DEVICE u64 flagOf(u64 arena, int which, u32 b, int src) { return arena + 4096 + 4 * ((u64)(which * MAXB + b) * MAXR + src); }
// Words with flags (LL) and lines with flags (LL128) have areas of their own:
// a flag's place must never have held data, or old data could pass for a flag.
DEVICE u64 wordsOf(u64 arena, u32 epoch) { return arena + 65536 + (epoch & 1) * (u64)WORD_HALF; }
DEVICE u64 linesOf(const Args& a, u64 arena, u32 epoch) { return arena + 65536 + 2 * (u64)WORD_HALF + (epoch & 1) * a.half; }

DEVICE u32 beginCall(const Args& a) { return *(volatile u32*)epochOf(a.arena[a.rank], block()) + 1; }

// endCall counts the call in this block's epoch, and block 0 for the blocks
// that this grid does not have, so that all epochs stay equal.
DEVICE void endCall(const Args& a, u32 epoch) {
  syncBlock();
  if (tid() == 0) *(volatile u32*)epochOf(a.arena[a.rank], block()) = epoch;
  if (block() == 0)
    for (u32 b = blocks() + tid(); b < MAXB; b += ntid()) *(volatile u32*)epochOf(a.arena[a.rank], b) = epoch;
}

// meet lets every rank's block b pass once all ranks' blocks b are here.
DEVICE void meet(const Args& a, int which, u32 epoch) {
  syncBlock();
  if (tid() < (u32)a.n) {
    storeRelease(flagOf(a.arena[tid()], which, block(), a.rank), epoch);
    while (loadAcquire(flagOf(a.arena[a.rank], which, block(), tid())) != epoch) {
    }
  }
  syncBlock();
}

// Words at the end of a buffer, or of a buffer that is not 8-byte aligned, are
// moved byte by byte.
SLOW u64 getBytes(u64 base, u64 off, u64 end) {
  u64 v = 0;
  for (int i = 0; i < 8; i++)
    if (off + i < end) v |= (u64)((const u8*)base)[off + i] << (8 * i);
  return v;
}
SLOW void putBytes(u64 base, u64 off, u64 end, u64 v) {
  for (int i = 0; i < 8; i++)
    if (off + i < end) ((u8*)base)[off + i] = (u8)(v >> (8 * i));
}
DEVICE u64 getWord(u64 base, u64 off, u64 end) {
  if (off + 8 <= end && ((base + off) & 7) == 0) return load8(base + off);
  return getBytes(base, off, end);
}
DEVICE void putWord(u64 base, u64 off, u64 end, u64 v) {
  if (off + 8 <= end && ((base + off) & 7) == 0) store8(base + off, v);
  else putBytes(base, off, end, v);
}

template <typename T, int OP> DEVICE void oneShot(const Args& a) {
  const u32 epoch = beginCall(a);
  const u64 words = (a.bytes + 7) / 8;
  const u64 step = (u64)blocks() * ntid();
  const u64 first = (u64)block() * ntid() + tid();
  const u64 span = WORD_HALF / MAXR;
  for (u64 w = first; w < words; w += step) {
    u64 v = getWord(a.in[a.rank], 8 * w, a.bytes);
    for (int i = 1; i < a.n; i++) {
      int p = (a.rank + i) % a.n;
      storeLine(wordsOf(a.arena[p], epoch) + a.rank * span + 16 * w, (u32)v, epoch, (u32)(v >> 32), epoch);
    }
  }
  for (u64 w = first; w < words; w += step) {
    u64 acc = 0;
    for (int r = 0; r < a.n; r++) {  // in rank order on every rank: equal bits everywhere
      u64 v;
      if (r == a.rank) {
        v = getWord(a.in[a.rank], 8 * w, a.bytes);
      } else {
        u32 x, fx, y, fy;
        do loadLine(wordsOf(a.arena[a.rank], epoch) + r * span + 16 * w, x, fx, y, fy);
        while (fx != epoch || fy != epoch);
        v = (u64)y << 32 | x;
      }
      acc = r == 0 ? v : red8<T, OP>(acc, v);
    }
    putWord(a.out[a.rank], 8 * w, a.bytes, fin8<T, OP>(acc, a.n));
  }
  endCall(a, epoch);
}

// A line of 128 bytes is 15 words and the epoch; lane 7 of its eight lanes
// holds the epoch. lineOff is the place of this lane's words in the payload.
DEVICE u64 lineOff(u64 line) { return line * 120 + 16 * (tid() & 7); }
DEVICE bool flagLane() { return (tid() & 7) == 7; }

DEVICE void sendLine(u64 at, u64 x, u64 y) {
  syncWarp();
  storeLine2(at, x, y);
}
// In every round the lanes meet before they read, so that the words are no
// older than the flag.
DEVICE void pollLine(u64 at, u32 epoch, u64& x, u64& y) {
  do {
    syncWarp();
    loadLine2(at, x, y);
  } while (anyLane(flagLane() && y != (u64)epoch));
}

// Work is dealt to whole warps, four lines at a time, so that all lanes poll
// together; a warp's last lines may lie past the end and carry nothing.
struct Deal {
  u64 line, step, lines;
};
DEVICE Deal deal(u64 bytes) {
  Deal d;
  d.lines = (bytes + 119) / 120;
  d.step = (u64)blocks() * (ntid() / 32) * 4;
  d.line = ((u64)block() * (ntid() / 32) + tid() / 32) * 4;
  return d;
}
DEVICE u64 lane8() { return (tid() & 31) / 8; }

DEVICE void readLane(u64 base, u64 off, u64 lo, u64 end, u64& x, u64& y, u32 epoch) {
  x = getWord(base, lo + off, end);
  y = flagLane() ? (u64)epoch : getWord(base, lo + off + 8, end);
}
DEVICE void writeLane(u64 base, u64 off, u64 lo, u64 end, u64 x, u64 y) {
  putWord(base, lo + off, end, x);
  if (!flagLane()) putWord(base, lo + off + 8, end, y);
}

DEVICE u64 minU(u64 a, u64 b) { return a < b ? a : b; }

// scatterLines sends part p of the input to rank p.
DEVICE void scatterLines(const Args& a, u32 epoch, u64 part, u64 total) {
  const u64 span = a.half / (2 * MAXR);
  for (Deal d = deal(part); d.line < d.lines; d.line += d.step) {
    u64 l = d.line + lane8(), off = lineOff(l);
    for (int i = 1; i < a.n; i++) {
      int p = (a.rank + i) % a.n;
      u64 lo = p * part, end = minU(lo + part, total), x, y;
      readLane(a.in[a.rank], off, lo, end, x, y, epoch);
      sendLine(linesOf(a, a.arena[p], epoch) + a.rank * span + l * 128 + 16 * (tid() & 7), x, y);
    }
  }
}

// reduceLines receives this rank's part from all and reduces it; with gather
// it sends the result on, else it only stores it at outLo.
template <typename T, int OP> DEVICE void reduceLines(const Args& a, u32 epoch, u64 part, u64 total, bool gather, u64 outLo) {
  const u64 span = a.half / (2 * MAXR);
  const u64 lo = a.rank * part, end = minU(lo + part, total);
  // Lines beyond the part hold nothing: they must not reach the next part.
  const u64 outEnd = gather ? minU(outLo + part, total) : part;
  for (Deal d = deal(part); d.line < d.lines; d.line += d.step) {
    u64 l = d.line + lane8(), off = lineOff(l), accX = 0, accY = 0;
    for (int r = 0; r < a.n; r++) {
      u64 x, y;
      if (r == a.rank) readLane(a.in[a.rank], off, lo, end, x, y, epoch);
      else pollLine(linesOf(a, a.arena[a.rank], epoch) + r * span + l * 128 + 16 * (tid() & 7), epoch, x, y);
      accX = r == 0 ? x : red8<T, OP>(accX, x);
      accY = r == 0 ? y : red8<T, OP>(accY, y);
    }
    accX = fin8<T, OP>(accX, a.n);
    accY = flagLane() ? (u64)epoch : fin8<T, OP>(accY, a.n);
    if (gather)
      for (int i = 1; i < a.n; i++) {
        int p = (a.rank + i) % a.n;
        sendLine(linesOf(a, a.arena[p], epoch) + (MAXR + a.rank) * span + l * 128 + 16 * (tid() & 7), accX, accY);
      }
    writeLane(a.out[a.rank], off, outLo, outEnd, accX, accY);
  }
}

// gatherLines receives every other rank's part from area and stores it.
DEVICE void gatherLines(const Args& a, u32 epoch, u64 part, u64 total, int area) {
  const u64 span = a.half / (2 * MAXR);
  for (Deal d = deal(part); d.line < d.lines; d.line += d.step) {
    u64 l = d.line + lane8(), off = lineOff(l);
    for (int i = 1; i < a.n; i++) {
      int p = (a.rank + i) % a.n;
      u64 lo = p * part, end = minU(lo + part, total), x, y;
      pollLine(linesOf(a, a.arena[a.rank], epoch) + (area * MAXR + p) * span + l * 128 + 16 * (tid() & 7), epoch, x, y);
      writeLane(a.out[a.rank], off, lo, end, x, y);
    }
  }
}

template <typename T, int OP> DEVICE void twoShot(const Args& a) {
  const u32 epoch = beginCall(a);
  scatterLines(a, epoch, a.chunk, a.bytes);
  reduceLines<T, OP>(a, epoch, a.chunk, a.bytes, true, a.rank * a.chunk);
  gatherLines(a, epoch, a.chunk, a.bytes, 1);
  endCall(a, epoch);
}

template <typename T, int OP> DEVICE void scatterReduce(const Args& a) {
  const u32 epoch = beginCall(a);
  scatterLines(a, epoch, a.bytes, a.bytes * a.n);
  reduceLines<T, OP>(a, epoch, a.bytes, a.bytes * a.n, false, 0);
  endCall(a, epoch);
}

// direct: rank r's share [lo, hi) of the buffer, read from all, written to all
// (reduce_scatter: written to its own output at 0).
// NR is the number of ranks, 0 where it is not known to the compiler.
template <typename T, int OP, int NR> DEVICE void directPacks(const Args& a, u64 lo, u64 hi, bool toAll, u64 shift) {
  const int U = 4, N = NR ? NR : a.n;
  const u64 step = (u64)blocks() * ntid() * 16;
  u64 at = lo + 16 * ((u64)block() * ntid() + tid());
  for (; a.aligned && at + (U - 1) * step + 16 <= hi; at += U * step) {
    Pack v[U];
    for (int r = 0; r < N; r++) {
      Pack x[U];
#pragma unroll
      for (int k = 0; k < U; k++) x[k] = load16(a.in[r] + at + k * step);
#pragma unroll
      for (int k = 0; k < U; k++) {
        v[k].a = r == 0 ? x[k].a : red8<T, OP>(v[k].a, x[k].a);
        v[k].b = r == 0 ? x[k].b : red8<T, OP>(v[k].b, x[k].b);
      }
    }
#pragma unroll
    for (int k = 0; k < U; k++) v[k] = Pack{fin8<T, OP>(v[k].a, N), fin8<T, OP>(v[k].b, N)};
    for (int i = 0; i < (toAll ? N : 1); i++) {
      int p = toAll ? (a.rank + i) % N : a.rank;
#pragma unroll
      for (int k = 0; k < U; k++) store16(a.out[p] + at + k * step - shift, v[k]);
    }
  }
  for (; at < hi; at += step)
    for (int h = 0; h < 2; h++) {
      u64 acc = 0, off = at + 8 * h;
      if (off >= hi) break;
      for (int r = 0; r < N; r++) {
        u64 x = getWord(a.in[r], off, hi);
        acc = r == 0 ? x : red8<T, OP>(acc, x);
      }
      acc = fin8<T, OP>(acc, N);
      for (int i = 0; i < (toAll ? N : 1); i++) {
        int p = toAll ? (a.rank + i) % N : a.rank;
        putWord(a.out[p], off - shift, hi - shift, acc);
      }
    }
}

template <typename T, int OP> DEVICE void direct(const Args& a, bool toAll) {
  const u32 epoch = beginCall(a);
  meet(a, 0, epoch);
  const u64 part = toAll ? a.chunk : a.bytes, total = toAll ? a.bytes : a.bytes * a.n;
  const u64 lo = minU(a.rank * part, total), hi = minU(lo + part, total), shift = toAll ? 0 : lo;
  if (a.n == 2) directPacks<T, OP, 2>(a, lo, hi, toAll, shift);
  else if (a.n == 4) directPacks<T, OP, 4>(a, lo, hi, toAll, shift);
  else if (a.n == 8) directPacks<T, OP, 8>(a, lo, hi, toAll, shift);
  else directPacks<T, OP, 0>(a, lo, hi, toAll, shift);
  meet(a, 1, epoch);
  endCall(a, epoch);
}

#define REDUCTIONS(T, tn, OP, on)                                                    \
  GLOBAL void one_shot_##tn##_##on(Args a) { oneShot<T, OP>(a); }                     \
  GLOBAL void two_shot_##tn##_##on(Args a) { twoShot<T, OP>(a); }                     \
  GLOBAL void direct_all_reduce_##tn##_##on(Args a) { direct<T, OP>(a, true); }       \
  GLOBAL void scatter_reduce_##tn##_##on(Args a) { scatterReduce<T, OP>(a); }         \
  GLOBAL void direct_reduce_scatter_##tn##_##on(Args a) { direct<T, OP>(a, false); }
#define TYPE(T, tn) REDUCTIONS(T, tn, SUM, sum) REDUCTIONS(T, tn, PROD, prod) REDUCTIONS(T, tn, MAX, max) REDUCTIONS(T, tn, MIN, min) REDUCTIONS(T, tn, AVG, avg)

#ifdef MOVES
// gather_ranks returns on every rank once all are here: copy engines do the
// rest, in the order of the stream.
GLOBAL void gather_ranks(Args a) {
  const u32 epoch = beginCall(a);
  meet(a, 0, epoch);
  endCall(a, epoch);
}

// gather: every rank's part goes to all, in lines.
GLOBAL void gather_lines(Args a) {
  const u32 epoch = beginCall(a);
  const u64 span = a.half / (2 * MAXR);
  for (Deal d = deal(a.bytes); d.line < d.lines; d.line += d.step) {
    u64 l = d.line + lane8(), off = lineOff(l), x, y;
    readLane(a.in[a.rank], off, 0, a.bytes, x, y, epoch);
    for (int i = 1; i < a.n; i++) {
      int p = (a.rank + i) % a.n;
      sendLine(linesOf(a, a.arena[p], epoch) + (MAXR + a.rank) * span + l * 128 + 16 * (tid() & 7), x, y);
    }
    writeLane(a.out[a.rank], off, a.rank * a.bytes, (a.rank + 1) * a.bytes, x, y);
  }
  gatherLines(a, epoch, a.bytes, a.bytes * a.n, 1);
  endCall(a, epoch);
}

// alltoall: part p goes to rank p, in lines.
GLOBAL void exchange_lines(Args a) {
  const u32 epoch = beginCall(a);
  scatterLines(a, epoch, a.bytes, a.bytes * a.n);
  u64 lo = a.rank * a.bytes;
  for (u64 w = (u64)block() * ntid() + tid(); 8 * w < a.bytes; w += (u64)blocks() * ntid())
    putWord(a.out[a.rank] + lo, 8 * w, a.bytes, getWord(a.in[a.rank] + lo, 8 * w, a.bytes));
  gatherLines(a, epoch, a.bytes, a.bytes * a.n, 0);
  endCall(a, epoch);
}

// copyParts writes bytes from src to dst on this block's share.
DEVICE void copyPart(u64 dst, u64 src, u64 bytes, bool aligned) {
  const int U = 4;
  const u64 step = (u64)blocks() * ntid() * 16;
  u64 at = 16 * ((u64)block() * ntid() + tid());
  if (aligned)
    for (; at + (U - 1) * step + 16 <= bytes; at += U * step) {
      Pack v[U];
#pragma unroll
      for (int k = 0; k < U; k++) v[k] = load16(src + at + k * step);
#pragma unroll
      for (int k = 0; k < U; k++) store16(dst + at + k * step, v[k]);
    }
  for (; at < bytes; at += step) {
    putWord(dst, at, bytes, getWord(src, at, bytes));
    if (at + 8 < bytes) putWord(dst, at + 8, bytes, getWord(src, at + 8, bytes));
  }
}

// direct_gather pushes this rank's input into every output; with one load for
// all peers.
GLOBAL void direct_gather(Args a) {
  const u32 epoch = beginCall(a);
  meet(a, 0, epoch);
  const int U = 4;
  const u64 step = (u64)blocks() * ntid() * 16, base = a.rank * a.bytes;
  u64 at = 16 * ((u64)block() * ntid() + tid());
  if (a.aligned)
    for (; at + (U - 1) * step + 16 <= a.bytes; at += U * step) {
      Pack v[U];
#pragma unroll
      for (int k = 0; k < U; k++) v[k] = load16(a.in[a.rank] + at + k * step);
      for (int i = 0; i < a.n; i++) {
        int p = (a.rank + i) % a.n;
#pragma unroll
        for (int k = 0; k < U; k++) store16(a.out[p] + base + at + k * step, v[k]);
      }
    }
  for (; at < a.bytes; at += step)
    for (int i = 0; i < a.n; i++) {
      int p = (a.rank + i) % a.n;
      putWord(a.out[p] + base, at, a.bytes, getWord(a.in[a.rank], at, a.bytes));
      if (at + 8 < a.bytes) putWord(a.out[p] + base, at + 8, a.bytes, getWord(a.in[a.rank], at + 8, a.bytes));
    }
  meet(a, 1, epoch);
  endCall(a, epoch);
}

// direct_exchange pushes part p of the input into rank p's output.
GLOBAL void direct_exchange(Args a) {
  const u32 epoch = beginCall(a);
  meet(a, 0, epoch);
  for (int i = 0; i < a.n; i++) {
    int p = (a.rank + i) % a.n;
    copyPart(a.out[p] + a.rank * a.bytes, a.in[a.rank] + p * a.bytes, a.bytes, a.aligned);
  }
  meet(a, 1, epoch);
  endCall(a, epoch);
}
#else
TYPE(ELEM, NAME)
#endif
