// Compute to measure collectives beside: an addition over arrays larger than any cache, which
// the device's memory holds up, and a kernel that holds a stream until the host lets it go.
#include "device.h"

// Args is mirrored by computeArgs in compute.go.
struct Args {
  u64 from, to;
  u64 packs;  // of 16 bytes
  u64 gate;   // on the host: not 0 lets the stream go
  u64 stop;
};
ARGS(compute);

// A thread adds one to a pack's words, a block of 128 threads to 2 KiB.
GLOBAL void add_ones(Args a) {
  for (u64 i = (u64)block() * ntid() + tid(); i < a.packs; i += (u64)blocks() * ntid()) {
    Pack p = load16(a.from + 16 * i);
    store16(a.to + 16 * i, Pack{p.a + 1, p.b + 1});
  }
}

GLOBAL void hold_stream(Args a) {
  Patience w = patience(a.stop);
  while (loadAcquire8(a.gate) == 0)
    if (w.over()) return;
}
