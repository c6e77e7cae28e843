// The tables of a plan that kernels read (program.go has the same), and what a
// program's threads know of their place in it.
#pragma once
#include "lines.h"
#include "reduce.h"

enum { SLOTS = 8, MAX_ENDS = 8, MAX_OPERANDS = 5, MAX_GROUPS = 16, MAX_WARPS = 20, MAX_RANKS = 8, MAX_LANES = 64 };

// Bits of a primitive; plan.Do has the same.
enum { RECV = 1, REDUCE = 2, COPY = 4, SEND = 8, POST = 16, HOLD_RECV = 32, HOLD_SEND = 64, ACCUM = 128 };
// What is received lies in its place already; what is sent goes to its place.
enum { IN_PLACE = 256, TO_PLACE = 512 };

enum { IN = 1, OUT = 2, SCRATCH = 3 };
enum { LL = 0, LL128 = 1, SIMPLE = 2, ANY = 3 };

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
  u16 first, count;
};
struct Args {
  u64 programs, ends;
  u64 in, out, scratch;
  u64 outs[MAX_RANKS]; // of all ranks, as mapped here
  u64 stop;           // flag that ends all waits
  int n;              // ranks
  u32 direct;         // outs are given
  u32 used;           // blocks that have a lane; the grid is whole clusters
  u32 pad;
  Lane lanes[MAX_LANES];
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
  Op ops[2];          // LL and LL128: this op and the next, in turn
};
struct Shared {
  Group group[MAX_GROUPS];
};

// Crew is this thread's place in a program, and what all its threads ask of the
// program's row again and again, in registers.
struct Crew {
  Group* g;
  u32 thread, threads; // of the program
  u32 warps, barrier, count, sliceSteps;
  u64 ops, times;
  u64 in, out;         // buffers of the rank
  int n;               // ranks
  Patience wait;
  METHOD void meet() const {
    if (warps == 1) syncWarp();
    else syncSome(barrier, threads);
  }
};

DEVICE u64 least(u64 a, u64 b) { return a < b ? a : b; }
DEVICE u64 buffer(const Args& a, u32 which) { return which == IN ? a.in : which == OUT ? a.out : a.scratch; }
DEVICE u64 slotOf(const End& e, u64 ahead, u64 off) { return e.slots + (e.step + ahead) % SLOTS * e.slotBytes + off; }

// await waits until the other end's count is at least need.
DEVICE void await(End& e, u64 need, Patience& w) {
  if (e.seen >= need) return;
  while (loadRelaxed8(e.theirs) < need)
    if (w.over()) return;
  e.seen = loadAcquire8(e.theirs);
}
