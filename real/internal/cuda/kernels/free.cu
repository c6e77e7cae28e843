// Free algorithms: collectives that use every link of an NVLink domain at once
// instead of NCCL's rings. Shapes:
//
//   one-shot  every rank writes its whole input, word and flag together (LL),
//             into every peer's arena; everyone reduces everything. One hop.
//   two-shot  chunk j goes to rank j, which reduces it and sends it to all. Two
//             hops, in 128-byte lines that carry their own flag (LL128) or, for
//             what is small, in words (LL).
//   push      the same in plain stores, piece by piece: a piece is announced by
//             a count behind a fence, and its place is used again once its
//             owner has announced the result. Blocks go their own ways.
//   direct    behind a barrier, rank j reads chunk j of every peer's input,
//             reduces it and writes it into every peer's output. No copies.
#include "free.h"

template <typename T, int OP> DEVICE void oneShot(const Args& a) {
  const u32 epoch = beginCall(a);
  const u64 words = (a.bytes + 7) / 8;
  Patience wait = patience(a.stop);
  for (u64 w = firstWord(); w < words; w += wordStep()) {
    u64 v = getWord(a.in[a.rank], 8 * w, a.bytes);
    for (int i = 1; i < a.n; i++) sendWord(wordOf(a, a.arena[after(a, i)], epoch, 0, a.rank, w), v, epoch);
  }
  for (u64 w = firstWord(); w < words; w += wordStep())
    putWord(a.out[a.rank], 8 * w, a.bytes, reduceWord<T, OP>(a, epoch, w, getWord(a.in[a.rank], 8 * w, a.bytes), wait));
  endCall(a, epoch);
}

// scatterWords sends part p of the input to rank p.
DEVICE void scatterWords(const Args& a, u32 epoch, u64 part, u64 total) {
  for (u64 w = firstWord(); 8 * w < part; w += wordStep())
    for (int i0 = 1; i0 < a.n; i0 += GROUP) {  // loads before stores, which they may not pass
      u64 v[GROUP];
#pragma unroll
      for (int i = 0; i < GROUP; i++) {
        const u64 lo = after(a, i0 + i) * part;
        if (i0 + i < a.n) v[i] = getWord(a.in[a.rank], lo + 8 * w, minU(lo + part, total));
      }
#pragma unroll
      for (int i = 0; i < GROUP; i++)
        if (i0 + i < a.n) sendWord(wordOf(a, a.arena[after(a, i0 + i)], epoch, 0, a.rank, w), v[i], epoch);
    }
}

// gatherWords receives every other rank's part from an area and stores it.
DEVICE void gatherWords(const Args& a, u32 epoch, u64 part, u64 total, int area, Patience& wait) {
  for (u64 w = firstWord(); 8 * w < part; w += wordStep())
    for (int r0 = 0; r0 < a.n; r0 += GROUP) {
      u64 v[GROUP];
      pollWords(a, epoch, area, r0, w, v, wait);
#pragma unroll
      for (int i = 0; i < GROUP; i++) {
        const u64 lo = (r0 + i) * part;
        if (r0 + i < a.n && r0 + i != a.rank) putWord(a.out[a.rank], lo + 8 * w, minU(lo + part, total), v[i]);
      }
    }
}

// twoWords is two-shot in words; without gather it ends after the reduction.
template <typename T, int OP> DEVICE void twoWords(const Args& a, bool gather) {
  const u32 epoch = beginCall(a);
  const u64 part = gather ? a.chunk : a.bytes, total = gather ? a.bytes : a.bytes * a.n;
  const u64 lo = a.rank * part, end = minU(lo + part, total), to = gather ? lo : 0;
  Patience wait = patience(a.stop);
  scatterWords(a, epoch, part, total);
  for (u64 w = firstWord(); 8 * w < part; w += wordStep()) {
    const u64 v = reduceWord<T, OP>(a, epoch, w, getWord(a.in[a.rank], lo + 8 * w, end), wait);
    for (int i = 1; gather && i < a.n; i++) sendWord(wordOf(a, a.arena[after(a, i)], epoch, 1, a.rank, w), v, epoch);
    putWord(a.out[a.rank], to + 8 * w, gather ? end : part, v);
  }
  if (gather) gatherWords(a, epoch, part, total, 1, wait);
  endCall(a, epoch);
}

// scatterLines sends part p of the input to rank p.
DEVICE void scatterLines(const Args& a, u32 epoch, u64 part, u64 total) {
  for (Deal d = deal(part); d.line < d.lines; d.line += d.step) EACH_LANE(lane) {
    u64 l = d.line + lineInWarp(), off = lineOff(l, lane);
    for (int i0 = 1; i0 < a.n; i0 += GROUP) {  // loads before stores, which they may not pass
      u64 x[GROUP], y[GROUP];
#pragma unroll
      for (int i = 0; i < GROUP; i++) {
        const u64 lo = after(a, i0 + i) * part;
        if (i0 + i < a.n) readLane(a.in[a.rank], lo + off, minU(lo + part, total), lane, epoch, x[i], y[i]);
      }
#pragma unroll
      for (int i = 0; i < GROUP; i++)
        if (i0 + i < a.n) sendLane(areaOf(a, a.arena[after(a, i0 + i)], epoch, 0, a.rank) + l * 128, lane, x[i], y[i]);
    }
  }
}

// reduceLines receives this rank's part from all and reduces it; with gather
// it sends the result on, else it only stores it at outLo.
template <typename T, int OP> DEVICE void reduceLines(const Args& a, u32 epoch, u64 part, u64 total, bool gather, u64 outLo, Patience& w) {
  const u64 lo = a.rank * part, end = minU(lo + part, total);
  // Lines beyond the part hold nothing: they must not reach the next part.
  const u64 outEnd = gather ? minU(outLo + part, total) : part;
  for (Deal d = deal(part); d.line < d.lines; d.line += d.step) EACH_LANE(lane) {
    u64 l = d.line + lineInWarp(), off = lineOff(l, lane), x, y;
    readLane(a.in[a.rank], lo + off, end, lane, epoch, x, y);
    reduceLane<T, OP>(a, epoch, l, lane, x, y, w);
    if (gather)
      for (int i = 1; i < a.n; i++) {
        const int p = after(a, i);
        sendLane(areaOf(a, a.arena[p], epoch, 1, a.rank) + l * 128, lane, x, y);
      }
    writeLane(a.out[a.rank], outLo + off, outEnd, lane, x, y);
  }
}

// gatherLines receives every other rank's part from an area and stores it.
DEVICE void gatherLines(const Args& a, u32 epoch, u64 part, u64 total, int area, Patience& w) {
  for (Deal d = deal(part); d.line < d.lines; d.line += d.step) EACH_LANE(lane) {
    u64 l = d.line + lineInWarp(), off = lineOff(l, lane);
    for (int r0 = 0; r0 < a.n; r0 += GROUP) {
      u64 x[GROUP], y[GROUP];
      pollLanes(a, epoch, area, r0, l, lane, x, y, w);
#pragma unroll
      for (int i = 0; i < GROUP; i++) {
        const u64 lo = (r0 + i) * part;
        if (r0 + i < a.n && r0 + i != a.rank) writeLane(a.out[a.rank], lo + off, minU(lo + part, total), lane, x[i], y[i]);
      }
    }
  }
}

template <typename T, int OP> DEVICE void twoShot(const Args& a) {
  const u32 epoch = beginCall(a);
  Patience w = patience(a.stop);
  scatterLines(a, epoch, a.chunk, a.bytes);
  reduceLines<T, OP>(a, epoch, a.chunk, a.bytes, true, a.rank * a.chunk, w);
  gatherLines(a, epoch, a.chunk, a.bytes, 1, w);
  endCall(a, epoch);
}

template <typename T, int OP> DEVICE void scatterReduce(const Args& a) {
  const u32 epoch = beginCall(a);
  Patience w = patience(a.stop);
  scatterLines(a, epoch, a.bytes, a.bytes * a.n);
  reduceLines<T, OP>(a, epoch, a.bytes, a.bytes * a.n, false, 0, w);
  endCall(a, epoch);
}

// push: each block sends its k-th piece to every owner, then reduces the piece
// before. DONE also gives the place of a piece back, so that a block may be
// DEPTH pieces ahead of its peers; at the end of a call all places are free. A
// peer's output is written only after a piece of this call has come from it, so
// it has begun.
template <typename T, int OP> DEVICE void push(const Args& a) {
  const u64 turn = (u64)blocks() * a.piece, pieces = (a.chunk + turn - 1) / turn;
  const u64 mine = minU(a.rank * a.chunk, a.bytes), size = minU(a.chunk, a.bytes - mine);
  const u32 base = *(volatile u32*)countOf(a.arena[a.rank], block());
  Patience w = patience(a.stop);
  for (u64 k = 0; k <= pieces; k++) {
    const u64 from = k * turn + block() * a.piece;
    if (k < pieces) {
      hear(a, DONE, base + k + 1 - DEPTH, w);
      for (int i = 1; i < a.n; i++) {
        const int p = after(a, i);
        const u64 lo = minU(p * a.chunk, a.bytes), left = minU(a.chunk, a.bytes - lo);
        if (from < left) copyPiece(pieceAt(a, a.arena[p], base + k, a.rank), a.in[a.rank] + lo + from, minU(a.piece, left - from), a.aligned);
      }
      tell(a, SENT, base + k + 1);
    }
    if (k > 0) {
      const u64 at = from - turn, own = a.in[a.rank] + mine + at;
      hear(a, SENT, base + k, w);
      if (at < size)
        reduceInto<T, OP>(
            a, tid(), ntid(), minU(a.piece, size - at), [&](int r) { return r == a.rank ? own : pieceAt(a, a.arena[a.rank], base + k - 1, r); }, a.n,
            [&](int i) { return a.out[after(a, i)] + mine + at; });
      tell(a, DONE, base + k);
    }
  }
  hear(a, DONE, base + pieces, w);
  if (tid() == 0) *(volatile u32*)countOf(a.arena[a.rank], block()) = base + pieces;
}

// direct: rank r's share of the buffer, read from all, written to all
// (reduce_scatter: written to its own output).
template <typename T, int OP> DEVICE void direct(const Args& a, bool toAll) {
  const u32 epoch = beginCall(a);
  Patience w = patience(a.stop);
  meet(a, START, epoch, w);
  const u64 part = toAll ? a.chunk : a.bytes, total = toAll ? a.bytes : a.bytes * a.n;
  const u64 lo = minU(a.rank * part, total), size = minU(part, total - lo), to = toAll ? lo : 0;
  reduceInto<T, OP>(
      a, (u64)block() * ntid() + tid(), (u64)blocks() * ntid(), size, [&](int r) { return a.in[r] + lo; }, toAll ? a.n : 1,
      [&](int i) { return a.out[after(a, i)] + to; });
  meet(a, END, epoch, w);
  endCall(a, epoch);
}

#define REDUCTIONS(T, tn, OP, on)                                                    \
  GLOBAL BOUNDS(THREADS) void one_shot_##tn##_##on(Args a) { oneShot<T, OP>(a); }                     \
  GLOBAL BOUNDS(THREADS) void two_shot_##tn##_##on(Args a) { twoShot<T, OP>(a); }                     \
  GLOBAL BOUNDS(THREADS) void two_words_##tn##_##on(Args a) { twoWords<T, OP>(a, true); }             \
  GLOBAL BOUNDS(THREADS) void scatter_words_##tn##_##on(Args a) { twoWords<T, OP>(a, false); }        \
  GLOBAL BOUNDS(THREADS) void scatter_reduce_##tn##_##on(Args a) { scatterReduce<T, OP>(a); }         \
  GLOBAL BOUNDS(THREADS) void push_all_reduce_##tn##_##on(Args a) { push<T, OP>(a); }                 \
  GLOBAL BOUNDS(THREADS) void direct_all_reduce_##tn##_##on(Args a) { direct<T, OP>(a, true); }       \
  GLOBAL BOUNDS(THREADS) void direct_reduce_scatter_##tn##_##on(Args a) { direct<T, OP>(a, false); }
#define TYPE(T, tn) REDUCTIONS(T, tn, SUM, sum) REDUCTIONS(T, tn, PROD, prod) REDUCTIONS(T, tn, MAX, max) REDUCTIONS(T, tn, MIN, min) REDUCTIONS(T, tn, AVG, avg)

#ifdef MOVES
// gather_ranks returns on every rank once all are here: copy engines do the
// rest, in the order of the stream.
GLOBAL BOUNDS(THREADS) void gather_ranks(Args a) {
  const u32 epoch = beginCall(a);
  Patience w = patience(a.stop);
  meet(a, START, epoch, w);
  endCall(a, epoch);
}

// await_copies returns once every peer's copies behind this rank's last call are here:
// a copy of the peer's count of calls comes behind them.
GLOBAL BOUNDS(THREADS) void await_copies(Args a) {
  Patience w = patience(a.stop);
  hear(a, COPIED, beginCall(a) - 1, w);
}

// gather: every rank's part goes to all, in lines.
GLOBAL BOUNDS(THREADS) void gather_lines(Args a) {
  const u32 epoch = beginCall(a);
  Patience w = patience(a.stop);
  for (Deal d = deal(a.bytes); d.line < d.lines; d.line += d.step) EACH_LANE(lane) {
    u64 l = d.line + lineInWarp(), off = lineOff(l, lane), x, y;
    readLane(a.in[a.rank], off, a.bytes, lane, epoch, x, y);
    for (int i = 1; i < a.n; i++) {
      const int p = after(a, i);
      sendLane(areaOf(a, a.arena[p], epoch, 1, a.rank) + l * 128, lane, x, y);
    }
    writeLane(a.out[a.rank], a.rank * a.bytes + off, (a.rank + 1) * a.bytes, lane, x, y);
  }
  gatherLines(a, epoch, a.bytes, a.bytes * a.n, 1, w);
  endCall(a, epoch);
}

// The same in words.
GLOBAL BOUNDS(THREADS) void gather_words(Args a) {
  const u32 epoch = beginCall(a);
  Patience wait = patience(a.stop);
  for (u64 w = firstWord(); 8 * w < a.bytes; w += wordStep()) {
    const u64 v = getWord(a.in[a.rank], 8 * w, a.bytes);
    for (int i = 1; i < a.n; i++) sendWord(wordOf(a, a.arena[after(a, i)], epoch, 1, a.rank, w), v, epoch);
    putWord(a.out[a.rank], a.rank * a.bytes + 8 * w, (a.rank + 1) * a.bytes, v);
  }
  gatherWords(a, epoch, a.bytes, a.bytes * a.n, 1, wait);
  endCall(a, epoch);
}

// copyOwn moves the part that stays.
DEVICE void copyOwn(const Args& a) {
  const u64 lo = a.rank * a.bytes;
  for (u64 w = firstWord(); 8 * w < a.bytes; w += wordStep()) putWord(a.out[a.rank] + lo, 8 * w, a.bytes, getWord(a.in[a.rank] + lo, 8 * w, a.bytes));
}

GLOBAL BOUNDS(THREADS) void exchange_words(Args a) {
  const u32 epoch = beginCall(a);
  Patience wait = patience(a.stop);
  scatterWords(a, epoch, a.bytes, a.bytes * a.n);
  copyOwn(a);
  gatherWords(a, epoch, a.bytes, a.bytes * a.n, 0, wait);
  endCall(a, epoch);
}

// alltoall: part p goes to rank p, in lines.
GLOBAL BOUNDS(THREADS) void exchange_lines(Args a) {
  const u32 epoch = beginCall(a);
  Patience w = patience(a.stop);
  scatterLines(a, epoch, a.bytes, a.bytes * a.n);
  copyOwn(a);
  gatherLines(a, epoch, a.bytes, a.bytes * a.n, 0, w);
  endCall(a, epoch);
}

// direct_gather pushes this rank's input into every output; with one load for
// all peers.
GLOBAL BOUNDS(THREADS) void direct_gather(Args a) {
  const u32 epoch = beginCall(a);
  Patience w = patience(a.stop);
  meet(a, START, epoch, w);
  const int U = 4;
  const u64 step = (u64)blocks() * ntid() * 16, base = a.rank * a.bytes;
  u64 at = 16 * ((u64)block() * ntid() + tid());
  if (a.aligned)
    for (; at + (U - 1) * step + 16 <= a.bytes; at += U * step) {
      Pack v[U];
#pragma unroll
      for (int k = 0; k < U; k++) v[k] = load16(a.in[a.rank] + at + k * step);
      for (int i = 0; i < a.n; i++) {
        const int p = after(a, i);
#pragma unroll
        for (int k = 0; k < U; k++) store16(a.out[p] + base + at + k * step, v[k]);
      }
    }
  for (; at < a.bytes; at += step)
    for (int i = 0; i < a.n; i++) {
      const int p = after(a, i);
      putWord(a.out[p] + base, at, a.bytes, getWord(a.in[a.rank], at, a.bytes));
      if (at + 8 < a.bytes) putWord(a.out[p] + base, at + 8, a.bytes, getWord(a.in[a.rank], at + 8, a.bytes));
    }
  meet(a, END, epoch, w);
  endCall(a, epoch);
}

// direct_exchange pushes part p of the input into rank p's output.
GLOBAL BOUNDS(THREADS) void direct_exchange(Args a) {
  const u32 epoch = beginCall(a);
  Patience w = patience(a.stop);
  meet(a, START, epoch, w);
  for (int i = 0; i < a.n; i++) {
    const int p = after(a, i);
    copyPart(a.out[p] + a.rank * a.bytes, a.in[a.rank] + p * a.bytes, a.bytes, a.aligned);
  }
  meet(a, END, epoch, w);
  endCall(a, epoch);
}
#else
TYPE(ELEM, NAME)
#endif
