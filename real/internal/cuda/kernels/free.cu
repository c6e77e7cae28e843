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
//
// Flags carry the number of the call (epoch), which every rank counts in its
// own memory, so that a replayed CUDA graph needs no new arguments. The two
// halves of the arena alternate: a rank can be at most one call ahead of a
// peer, because it cannot finish a call without data of that call from every
// peer. All ranks use the same grid for the same call.
#include "lines.h"
#include "reduce.h"

// What comes from GROUP ranks is held in registers at once.
enum { MAXR = 8, MAXB = 256, WORD_HALF = 8 << 20, DEPTH = 4, GROUP = 4, THREADS = 512 };

// Args is mirrored by freeArgs in free.go.
struct Args {
  u64 arena[MAXR];  // by rank: this rank's own, and the peers' as mapped here
  u64 in[MAXR];     // inputs by rank; only the own one unless direct
  u64 out[MAXR];    // outputs by rank; only the own one unless direct or push
  u64 bytes;        // of one rank's part: all_reduce: the whole buffer
  u64 chunk;        // bytes of one rank's share of an all_reduce, a multiple of 16
  u64 half;         // bytes of one half of the line area
  u64 span;         // bytes that words or lines of one rank take
  u64 slots;        // offset of the pieces in the arena
  u64 piece;        // bytes of a piece, a multiple of 16
  u64 stop;         // flag that ends all waits
  int rank, n;
  int aligned;      // all user pointers are 16-byte aligned
  int pad;
};
ARGS(free);

// Arena layout: epochs, flags (start and end of direct; pieces sent and done),
// counts of pieces, word areas, line areas, pieces.
enum { START, END, SENT, DONE };
DEVICE u64 epochOf(u64 arena, u32 b) { return arena + 4 * b; }
DEVICE u64 flagOf(u64 arena, int which, u32 b, int src) { return arena + 4096 + 4 * ((u64)(which * MAXB + b) * MAXR + src); }
DEVICE u64 countOf(u64 arena, u32 b) { return arena + 40960 + 4 * b; }
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

// tell sets a flag at every peer, for what all threads of the block did.
DEVICE void tell(const Args& a, int which, u32 value) {
  syncBlock();
  for (int r = tid(); r < a.n; r += ntid())
    if (r != a.rank) storeRelease(flagOf(a.arena[r], which, block(), a.rank), value);
}

// hear waits until every peer's flag is at least value, on a circle of numbers.
DEVICE void hear(const Args& a, int which, u32 value, Patience& w) {
  for (int r = tid(); r < a.n; r += ntid()) {
    if (r == a.rank) continue;
    const u64 flag = flagOf(a.arena[a.rank], which, block(), r);
    while ((int)(loadNow(flag) - value) < 0)
      if (w.over()) break;
    loadAcquire(flag);
  }
  syncBlock();
}

// meet lets every rank's block b pass once all ranks' blocks b are here.
DEVICE void meet(const Args& a, int which, u32 epoch, Patience& w) {
  tell(a, which, epoch);
  hear(a, which, epoch, w);
}

DEVICE u64 minU(u64 a, u64 b) { return a < b ? a : b; }

// after is the rank i places behind this one on the circle.
DEVICE int after(const Args& a, int i) { return a.rank + i < a.n ? a.rank + i : a.rank + i - a.n; }

// Work on words is dealt to threads. The areas are as those of lines (below).
DEVICE u64 wordOf(const Args& a, u64 arena, u32 epoch, int which, int src, u64 w) { return wordsOf(arena, epoch) + (which * a.n + src) * a.span + 16 * w; }
DEVICE u64 firstWord() { return (u64)block() * ntid() + tid(); }
DEVICE u64 wordStep() { return (u64)blocks() * ntid(); }

DEVICE void sendWord(u64 at, u64 v, u32 epoch) { storeLine(at, (u32)v, epoch, (u32)(v >> 32), epoch); }

// pollWords reads a word from the peers of a group.
DEVICE void pollWords(const Args& a, u32 epoch, int which, int r0, u64 w, u64* v, Patience& wait) {
  bool missing;
  do {
    missing = false;
#pragma unroll
    for (int i = 0; i < GROUP; i++) {
      if (r0 + i >= a.n || r0 + i == a.rank) continue;
      u32 x, fx, y, fy;
      loadLine(wordOf(a, a.arena[a.rank], epoch, which, r0 + i, w), x, fx, y, fy);
      v[i] = (u64)y << 32 | x;
      missing |= fx != epoch || fy != epoch;
    }
  } while (missing && !wait.over());
}

// reduceWord receives a word from all peers and reduces it with the own, in
// rank order on every rank: equal bits everywhere.
template <typename T, int OP> DEVICE u64 reduceWord(const Args& a, u32 epoch, u64 w, u64 own, Patience& wait) {
  u64 acc = 0;
  for (int r0 = 0; r0 < a.n; r0 += GROUP) {
    u64 v[GROUP];
    pollWords(a, epoch, 0, r0, w, v, wait);
#pragma unroll
    for (int i = 0; i < GROUP; i++) {
      if (r0 + i == a.rank) v[i] = own;
      if (r0 + i < a.n) acc = r0 + i == 0 ? v[i] : red8<T, OP>(acc, v[i]);
    }
  }
  return fin8<T, OP>(acc, a.n);
}

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

// Lines are dealt to whole warps, LINES at a time, so that all lanes poll
// together; a warp's last lines may lie past the end and carry nothing.
struct Deal {
  u64 line, step, lines;
};
DEVICE Deal deal(u64 bytes) {
  Deal d;
  d.lines = (bytes + 119) / 120;
  d.step = (u64)blocks() * (ntid() / WARP) * LINES;
  d.line = ((u64)block() * (ntid() / WARP) + tid() / WARP) * LINES;
  return d;
}

// Each line area has a place for what comes to be reduced, and one for results,
// of every rank. They lie close together: a GPU finds few pages fast.
DEVICE u64 areaOf(const Args& a, u64 arena, u32 epoch, int which, int src) {
  return linesOf(a, arena, epoch) + (which * a.n + src) * a.span;
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

// pollLanes reads the lanes of one line from the peers of a group.
DEVICE void pollLanes(const Args& a, u32 epoch, int which, int r0, u64 line, u32 lane, u64* x, u64* y, Patience& w) {
  bool missing;
  do {
    missing = false;
    syncWarp();
#pragma unroll
    for (int i = 0; i < GROUP; i++) {
      if (r0 + i >= a.n || r0 + i == a.rank) continue;
      const u64 at = areaOf(a, a.arena[a.rank], epoch, which, r0 + i) + line * 128;
      missing |= !tryLane(at, lane, epoch, x[i], y[i]);
    }
  } while (anyLane(missing) && !anyLane(w.over()));
}

// reduceLines receives this rank's part from all and reduces it; with gather
// it sends the result on, else it only stores it at outLo.
template <typename T, int OP> DEVICE void reduceLines(const Args& a, u32 epoch, u64 part, u64 total, bool gather, u64 outLo, Patience& w) {
  const u64 lo = a.rank * part, end = minU(lo + part, total);
  // Lines beyond the part hold nothing: they must not reach the next part.
  const u64 outEnd = gather ? minU(outLo + part, total) : part;
  for (Deal d = deal(part); d.line < d.lines; d.line += d.step) EACH_LANE(lane) {
    u64 l = d.line + lineInWarp(), off = lineOff(l, lane), accX = 0, accY = 0, ownX, ownY;
    readLane(a.in[a.rank], lo + off, end, lane, epoch, ownX, ownY);
    for (int r0 = 0; r0 < a.n; r0 += GROUP) {
      u64 x[GROUP], y[GROUP];
      pollLanes(a, epoch, 0, r0, l, lane, x, y, w);
#pragma unroll
      for (int i = 0; i < GROUP; i++) {
        if (r0 + i == a.rank) x[i] = ownX, y[i] = ownY;
        if (r0 + i < a.n) accX = r0 + i == 0 ? x[i] : red8<T, OP>(accX, x[i]);
        if (r0 + i < a.n) accY = r0 + i == 0 ? y[i] : red8<T, OP>(accY, y[i]);
      }
    }
    accX = fin8<T, OP>(accX, a.n);
    accY = flagLane(lane) ? (u64)epoch : fin8<T, OP>(accY, a.n);
    if (gather)
      for (int i = 1; i < a.n; i++) {
        const int p = after(a, i);
        sendLane(areaOf(a, a.arena[p], epoch, 1, a.rank) + l * 128, lane, accX, accY);
      }
    writeLane(a.out[a.rank], outLo + off, outEnd, lane, accX, accY);
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

// pieceAt is where rank src leaves a piece for the owner of the arena.
DEVICE u64 pieceAt(const Args& a, u64 arena, u32 count, int src) {
  return arena + a.slots + (((u64)(count % DEPTH) * blocks() + block()) * a.n + src) * a.piece;
}

// copyPiece moves n bytes with all threads of the block.
DEVICE void copyPiece(u64 dst, u64 src, u64 n, bool aligned) {
  const int U = 4;
  const u64 step = 16 * (u64)ntid();
  u64 at = 16 * (u64)tid();
  if (aligned) {
    for (; at + (U - 1) * step + 16 <= n; at += U * step) {
      Pack v[U];
#pragma unroll
      for (int k = 0; k < U; k++) v[k] = load16(src + at + k * step);
#pragma unroll
      for (int k = 0; k < U; k++) store16(dst + at + k * step, v[k]);
    }
    for (; at + 16 <= n; at += step) store16(dst + at, load16(src + at));
  }
  for (; at < n; at += step) {
    putWord(dst, at, n, getWord(src, at, n));
    if (at + 8 < n) putWord(dst, at + 8, n, getWord(src, at + 8, n));
  }
}

// reduceFrom reduces what lies at off of each rank's source, U packs a step
// apart, in rank order.
template <typename T, int OP, int U, typename Source> DEVICE void reduceFrom(int n, u64 off, u64 step, Source source, Pack* v) {
  for (int r0 = 0; r0 < n; r0 += GROUP) {
    Pack x[GROUP][U];
#pragma unroll
    for (int i = 0; i < GROUP; i++)
      if (r0 + i < n)
#pragma unroll
        for (int k = 0; k < U; k++) loadLine2(source(r0 + i) + off + k * step, x[i][k].a, x[i][k].b);
#pragma unroll
    for (int i = 0; i < GROUP; i++)
      if (r0 + i < n)
#pragma unroll
        for (int k = 0; k < U; k++) v[k] = r0 + i == 0 ? x[i][k] : red16<T, OP>(v[k], x[i][k]);
  }
#pragma unroll
  for (int k = 0; k < U; k++) v[k] = fin16<T, OP>(v[k], n);
}

// reduceWords does the same for single words, up to n bytes, and stores them.
template <typename T, int OP, typename Source, typename Place> DEVICE void reduceWords(const Args& a, u64 at, u64 step, u64 n, Source source, int places, Place place) {
  for (; at < n; at += step)
    for (u64 w = at; w < minU(at + 16, n); w += 8) {
      u64 acc = 0;
      for (int r = 0; r < a.n; r++) {
        u64 x = getWord(source(r), w, n);
        acc = r == 0 ? x : red8<T, OP>(acc, x);
      }
      acc = fin8<T, OP>(acc, a.n);
      for (int i = 0; i < places; i++) putWord(place(i), w, n, acc);
    }
}

// reduceInto reduces n bytes of all ranks' sources into some places; thread
// first of stride threads.
template <typename T, int OP, typename Source, typename Place> DEVICE void reduceInto(const Args& a, u64 first, u64 stride, u64 n, Source source, int places, Place place) {
  const int U = 2;
  const u64 step = 16 * stride;
  u64 at = 16 * first;
  if (a.aligned) {
    for (; at + (U - 1) * step + 16 <= n; at += U * step) {
      Pack v[U];
      reduceFrom<T, OP, U>(a.n, at, step, source, v);
      for (int i = 0; i < places; i++)
#pragma unroll
        for (int k = 0; k < U; k++) store16(place(i) + at + k * step, v[k]);
    }
    for (; at + 16 <= n; at += step) {
      Pack v;
      reduceFrom<T, OP, 1>(a.n, at, step, source, &v);
      for (int i = 0; i < places; i++) store16(place(i) + at, v);
    }
  }
  reduceWords<T, OP>(a, at, step, n, source, places, place);
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
