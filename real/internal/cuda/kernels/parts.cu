// Free algorithms of operations that do not treat all ranks alike: broadcast,
// reduce, gather, scatter, send and receive, alltoall of unequal parts. What
// goes from whom to whom is in the arguments; the kernels only differ in how it
// travels:
//
//   words, lines  with flags, into the peers' arenas (free.h)
//   direct        behind a barrier, straight into the peers' outputs
//   relay         broadcast: every peer has a share from the root and gives it
//                 to the others, so that the root sends each byte once
//   two_shot      the same in lines, for what fits into the arenas
//
// A reduction is cut into shares, each of which one rank reduces: the root all
// of it where latency counts; else every other rank its share, so that no link
// carries a byte more than the root's result.
#include "free.h"

// Parts is mirrored by partArgs in parts.go. The arrays are by rank.
struct Parts {
  Args a;
  u64 from[MAXR];  // offset in this rank's input of what goes to a rank
  u64 size[MAXR];  // its bytes
  u64 to[MAXR];    // its offset in that rank's output
  u64 at[MAXR];    // offset in this rank's output of what comes from a rank
  u64 due[MAXR];   // its bytes
  int root, pad;
};
ARGS_OF(parts, Parts);

// A rank that only sends could be calls ahead of who still reads. So each says
// that it has begun, which implies that its calls before have ended, and ends
// when all have said so. Block 0 speaks for a rank: none of its blocks begins a
// call before all have ended the last.
DEVICE void sayBegun(const Args& a, u32 epoch) {
  if (block() > 0) return;
  for (int r = tid(); r < a.n; r += ntid())
    if (r != a.rank) storeRelease(flagOf(a.arena[r], HERE, 0, a.rank), epoch);
}
DEVICE void endAfterAllBegan(const Args& a, u32 epoch, Patience& w) {
  if (block() == 0)
    for (int r = tid(); r < a.n; r += ntid())
      while (r != a.rank && (int)(loadNow(flagOf(a.arena[a.rank], HERE, 0, r)) - epoch) < 0)
        if (w.over()) break;
  endCall(a, epoch);
}

// longest is the largest part but the rank's own.
DEVICE u64 longest(const Args& a, const u64* part) {
  u64 most = 0;
  for (int i = 1; i < a.n; i++) most = part[after(a, i)] > most ? part[after(a, i)] : most;
  return most;
}

// keepOwn copies what stays on the rank.
DEVICE void keepOwn(const Parts& p) {
  const Args& a = p.a;
  const u64 src = a.in[a.rank] + p.from[a.rank], dst = a.out[a.rank] + p.at[a.rank];
  if (p.size[a.rank] > 0 && src != dst) copyPart(dst, src, p.size[a.rank], ((src | dst) & 15) == 0);
}

// sendWords sends every peer its part.
DEVICE void sendWords(const Parts& p, u32 epoch) {
  const Args& a = p.a;
  const u64 most = longest(a, p.size);
  for (u64 w = firstWord(); 8 * w < most; w += wordStep())
    for (int i0 = 1; i0 < a.n; i0 += GROUP) {  // loads before stores, which they may not pass
      u64 v[GROUP];
#pragma unroll
      for (int i = 0; i < GROUP; i++) {
        const int q = after(a, i0 + i);
        if (i0 + i < a.n && 8 * w < p.size[q]) v[i] = getWord(a.in[a.rank] + p.from[q], 8 * w, p.size[q]);
      }
#pragma unroll
      for (int i = 0; i < GROUP; i++) {
        const int q = after(a, i0 + i);
        if (i0 + i < a.n && 8 * w < p.size[q]) sendWord(wordOf(a, a.arena[q], epoch, 0, a.rank, w), v[i], epoch);
      }
    }
}

// takeWords receives every peer's part from an area and stores it.
DEVICE void takeWords(const Parts& p, u32 epoch, int area, Patience& wait) {
  const Args& a = p.a;
  const u64 most = longest(a, p.due);
  for (u64 w = firstWord(); 8 * w < most; w += wordStep())
    for (int r0 = 0; r0 < a.n; r0 += GROUP) {
      u64 v[GROUP];
      bool missing;
      do {
        missing = false;
#pragma unroll
        for (int i = 0; i < GROUP; i++) {
          if (r0 + i >= a.n || r0 + i == a.rank || 8 * w >= p.due[r0 + i]) continue;
          u32 x, fx, y, fy;
          loadLine(wordOf(a, a.arena[a.rank], epoch, area, r0 + i, w), x, fx, y, fy);
          v[i] = (u64)y << 32 | x;
          missing |= fx != epoch || fy != epoch;
        }
      } while (missing && !wait.over());
#pragma unroll
      for (int i = 0; i < GROUP; i++)
        if (r0 + i < a.n && r0 + i != a.rank && 8 * w < p.due[r0 + i]) putWord(a.out[a.rank] + p.at[r0 + i], 8 * w, p.due[r0 + i], v[i]);
    }
}

// sendLines and takeLines are the same in lines. A warp's lines travel
// together, so its first says whether a part reaches so far.
DEVICE void sendLines(const Parts& p, u32 epoch) {
  const Args& a = p.a;
  for (Deal d = deal(longest(a, p.size)); d.line < d.lines; d.line += d.step) EACH_LANE(lane) {
    const u64 l = d.line + lineInWarp(), off = lineOff(l, lane);
    for (int i0 = 1; i0 < a.n; i0 += GROUP) {
      u64 x[GROUP], y[GROUP];
#pragma unroll
      for (int i = 0; i < GROUP; i++) {
        const int q = after(a, i0 + i);
        if (i0 + i < a.n && 120 * d.line < p.size[q]) readLane(a.in[a.rank] + p.from[q], off, p.size[q], lane, epoch, x[i], y[i]);
      }
#pragma unroll
      for (int i = 0; i < GROUP; i++) {
        const int q = after(a, i0 + i);
        if (i0 + i < a.n && 120 * d.line < p.size[q]) sendLane(areaOf(a, a.arena[q], epoch, 0, a.rank) + l * 128, lane, x[i], y[i]);
      }
    }
  }
}

DEVICE void takeLines(const Parts& p, u32 epoch, int area, Patience& wait) {
  const Args& a = p.a;
  for (Deal d = deal(longest(a, p.due)); d.line < d.lines; d.line += d.step) EACH_LANE(lane) {
    const u64 l = d.line + lineInWarp(), off = lineOff(l, lane);
    for (int r0 = 0; r0 < a.n; r0 += GROUP) {
      u64 x[GROUP], y[GROUP];
      bool missing;
      do {
        missing = false;
        syncWarp();
#pragma unroll
        for (int i = 0; i < GROUP; i++) {
          if (r0 + i >= a.n || r0 + i == a.rank || 120 * d.line >= p.due[r0 + i]) continue;
          missing |= !tryLane(areaOf(a, a.arena[a.rank], epoch, area, r0 + i) + l * 128, lane, epoch, x[i], y[i]);
        }
      } while (anyLane(missing) && !anyLane(wait.over()));
#pragma unroll
      for (int i = 0; i < GROUP; i++)
        if (r0 + i < a.n && r0 + i != a.rank && 120 * d.line < p.due[r0 + i]) writeLane(a.out[a.rank] + p.at[r0 + i], off, p.due[r0 + i], lane, x[i], y[i]);
    }
  }
}

// flagged is a call of words or lines, which ends when all ranks have begun it.
template <typename Body> DEVICE void flagged(const Parts& p, Body body) {
  const u32 epoch = beginCall(p.a);
  Patience wait = patience(p.a.stop);
  sayBegun(p.a, epoch);
  body(epoch, wait);
  endAfterAllBegan(p.a, epoch, wait);
}

#ifdef MOVES
GLOBAL BOUNDS(THREADS) void part_words(Parts p) {
  flagged(p, [&](u32 epoch, Patience& wait) {
    sendWords(p, epoch);
    keepOwn(p);
    takeWords(p, epoch, 0, wait);
  });
}

GLOBAL BOUNDS(THREADS) void part_lines(Parts p) {
  flagged(p, [&](u32 epoch, Patience& wait) {
    sendLines(p, epoch);
    keepOwn(p);
    takeLines(p, epoch, 0, wait);
  });
}

// relayLines receives this rank's share from the root, line by line, and gives each line on to the
// other peers. The share's place in the output is from, as for a share of a reduction.
DEVICE void relayLines(const Parts& p, u32 epoch, Patience& wait) {
  const Args& a = p.a;
  const u64 dst = a.out[a.rank] + p.from[a.rank], size = p.size[a.rank];
  for (Deal d = deal(size); d.line < d.lines; d.line += d.step) EACH_LANE(lane) {
    const u64 l = d.line + lineInWarp(), at = areaOf(a, a.arena[a.rank], epoch, 0, p.root) + l * 128;
    u64 x, y;
    bool missing;
    do {
      syncWarp();
      missing = !tryLane(at, lane, epoch, x, y);
    } while (anyLane(missing) && !anyLane(wait.over()));
    for (int i = 1; i < a.n; i++) {
      const int q = after(a, i);
      if (q != p.root) sendLane(areaOf(a, a.arena[q], epoch, 1, a.rank) + l * 128, lane, x, y);
    }
    writeLane(dst, lineOff(l, lane), size, lane, x, y);
  }
}

// part_two_shot broadcasts in shares, one for each rank but the root, in lines: a line is given on
// when it comes, without a fence.
GLOBAL BOUNDS(THREADS) void part_two_shot(Parts p) {
  flagged(p, [&](u32 epoch, Patience& wait) {
    if (p.a.rank == p.root) {
      sendLines(p, epoch);
      keepOwn(p);
      return;
    }
    relayLines(p, epoch, wait);
    takeLines(p, epoch, 1, wait);
  });
}

GLOBAL BOUNDS(THREADS) void part_direct(Parts p) {
  const Args& a = p.a;
  const u32 epoch = beginCall(a);
  Patience w = patience(a.stop);
  meet(a, START, epoch, w);
  for (int i = 1; i < a.n; i++) {
    const int q = after(a, i);
    const u64 src = a.in[a.rank] + p.from[q], dst = a.out[q] + p.to[q];
    copyPart(dst, src, p.size[q], ((src | dst) & 15) == 0);
  }
  keepOwn(p);
  meet(a, END, epoch, w);
  endCall(a, epoch);
}

// part_relay broadcasts in shares of chunk bytes, one for each rank but the
// root, in the order behind it. A peer gives a piece on once the root has told it. Its counts of pieces are
// its own: push counts on what all peers have sent and taken, and here the root alone sends.
GLOBAL BOUNDS(THREADS) void part_relay(Parts p) {
  const Args& a = p.a;
  const u32 epoch = beginCall(a), base = *(volatile u32*)relayedOf(a.arena[a.rank], block());
  const u64 turn = (u64)blocks() * a.piece, pieces = (a.chunk + turn - 1) / turn;
  const bool isRoot = a.rank == p.root;
  const int mine = (a.rank - p.root + a.n) % a.n - 1;
  Patience w = patience(a.stop);
  meet(a, START, epoch, w);
  for (u64 k = 0; k < pieces; k++) {
    const u64 from = k * turn + block() * a.piece;
    if (!isRoot) {
      const u64 flag = flagOf(a.arena[a.rank], RELAYED, block(), p.root);
      if (tid() == 0) {
        while ((int)(loadNow(flag) - (base + (u32)k + 1)) < 0)
          if (w.over()) break;
        loadAcquire(flag);
      }
      syncBlock();
    }
    for (int i = 1; i < a.n; i++) {
      const int q = after(a, i), share = isRoot ? i - 1 : mine;
      const u64 lo = minU(share * a.chunk, a.bytes), left = minU(a.chunk, a.bytes - lo), src = isRoot ? a.in[a.rank] : a.out[a.rank];
      if (q != p.root && from < left) copyPiece(a.out[q] + lo + from, src + lo + from, minU(a.piece, left - from), a.aligned);
    }
    if (isRoot) tell(a, RELAYED, base + k + 1);
  }
  if (isRoot) keepOwn(p);
  syncBlock();
  if (tid() == 0) *(volatile u32*)relayedOf(a.arena[a.rank], block()) = base + pieces;
  meet(a, END, epoch, w);
  endCall(a, epoch);
}
#else
// A share of a reduction lies at from and has size bytes, by the rank that
// reduces it; the root takes results from due ranks.
template <typename T, int OP> DEVICE void rootWords(const Parts& p) {
  const Args& a = p.a;
  const u64 src = a.in[a.rank] + p.from[a.rank], size = p.size[a.rank];
  flagged(p, [&](u32 epoch, Patience& wait) {
    sendWords(p, epoch);
    for (u64 w = firstWord(); 8 * w < size; w += wordStep()) {
      const u64 v = reduceWord<T, OP>(a, epoch, w, getWord(src, 8 * w, size), wait);
      if (a.rank == p.root) putWord(a.out[a.rank] + p.from[a.rank], 8 * w, size, v);
      else sendWord(wordOf(a, a.arena[p.root], epoch, 1, a.rank, w), v, epoch);
    }
    takeWords(p, epoch, 1, wait);
  });
}

template <typename T, int OP> DEVICE void rootLines(const Parts& p) {
  const Args& a = p.a;
  const u64 src = a.in[a.rank] + p.from[a.rank], size = p.size[a.rank];
  flagged(p, [&](u32 epoch, Patience& wait) {
    sendLines(p, epoch);
    for (Deal d = deal(size); d.line < d.lines; d.line += d.step) EACH_LANE(lane) {
      u64 l = d.line + lineInWarp(), off = lineOff(l, lane), x, y;
      readLane(src, off, size, lane, epoch, x, y);
      reduceLane<T, OP>(a, epoch, l, lane, x, y, wait);
      if (a.rank == p.root) writeLane(a.out[a.rank] + p.from[a.rank], off, size, lane, x, y);
      else sendLane(areaOf(a, a.arena[p.root], epoch, 1, a.rank) + l * 128, lane, x, y);
    }
    takeLines(p, epoch, 1, wait);
  });
}

template <typename T, int OP> DEVICE void rootDirect(const Parts& p) {
  const Args& a = p.a;
  const u32 epoch = beginCall(a);
  const u64 lo = p.from[a.rank];
  Patience w = patience(a.stop);
  meet(a, START, epoch, w);
  reduceInto<T, OP>(
      a, (u64)block() * ntid() + tid(), (u64)blocks() * ntid(), p.size[a.rank], [&](int r) { return a.in[r] + lo; }, 1, [&](int) { return a.out[p.root] + lo; });
  meet(a, END, epoch, w);
  endCall(a, epoch);
}

#define REDUCTIONS(T, tn, OP, on)                                                          \
  GLOBAL BOUNDS(THREADS) void part_words_##tn##_##on(Parts p) { rootWords<T, OP>(p); }     \
  GLOBAL BOUNDS(THREADS) void part_lines_##tn##_##on(Parts p) { rootLines<T, OP>(p); }     \
  GLOBAL BOUNDS(THREADS) void part_direct_##tn##_##on(Parts p) { rootDirect<T, OP>(p); }
#define TYPE(T, tn) REDUCTIONS(T, tn, SUM, sum) REDUCTIONS(T, tn, PROD, prod) REDUCTIONS(T, tn, MAX, max) REDUCTIONS(T, tn, MIN, min) REDUCTIONS(T, tn, AVG, avg)
TYPE(ELEM, NAME)
#endif
