// What the free algorithms share: an arena of each rank in memory that its
// peers reach, flags, words and lines that carry flags, pieces.
//
// Flags carry the number of the call (epoch), which every rank counts in its
// own memory, so that a replayed CUDA graph needs no new arguments. The two
// halves of the arena alternate: a rank can be at most one call ahead of a
// peer, because it cannot finish a call without word of that call from every
// peer. All ranks use the same grid for the same call.
#pragma once
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

// Arena layout: epochs, flags (start and end of direct; pieces sent and done;
// calls begun, of block 0 alone, behind which counts of pieces are; copies that came, of
// block 0 alone: COPIED of free.go; pieces of a relay), word areas, line areas, pieces.
enum { START, END, SENT, DONE, HERE, COPIED, RELAYED };
DEVICE u64 epochOf(u64 arena, u32 b) { return arena + 4 * b; }
DEVICE u64 flagOf(u64 arena, int which, u32 b, int src) { return arena + 4096 + 4 * ((u64)(which * MAXB + b) * MAXR + src); }
DEVICE u64 countOf(u64 arena, u32 b) { return arena + 40960 + 4 * b; }
DEVICE u64 relayedOf(u64 arena, u32 b) { return arena + 40960 + 4 * (MAXB + b); }
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

// pieceAt is where rank src leaves a piece for the owner of the arena.
DEVICE u64 pieceAt(const Args& a, u64 arena, u32 count, int src) {
  return arena + a.slots + (((u64)(count % DEPTH) * blocks() + block()) * a.n + src) * a.piece;
}

// reduceLane receives a lane of a line from all peers and reduces it with the own.
template <typename T, int OP> DEVICE void reduceLane(const Args& a, u32 epoch, u64 line, u32 lane, u64& ownX, u64& ownY, Patience& w) {
  u64 accX = 0, accY = 0;
  for (int r0 = 0; r0 < a.n; r0 += GROUP) {
    u64 x[GROUP], y[GROUP];
    pollLanes(a, epoch, 0, r0, line, lane, x, y, w);
#pragma unroll
    for (int i = 0; i < GROUP; i++) {
      if (r0 + i == a.rank) x[i] = ownX, y[i] = ownY;
      if (r0 + i < a.n) accX = r0 + i == 0 ? x[i] : red8<T, OP>(accX, x[i]);
      if (r0 + i < a.n) accY = r0 + i == 0 ? y[i] : red8<T, OP>(accY, y[i]);
    }
  }
  ownX = fin8<T, OP>(accX, a.n);
  ownY = flagLane(lane) ? (u64)epoch : fin8<T, OP>(accY, a.n);
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

// copyPart copies this block's share of some bytes.
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
