// tell_clock answers the host's questions for the time: the host writes the
// number of its question, the GPU its clock and then the number. Between the
// two the host has seen its own clock twice, which ties one to the other.
#include "device.h"

// Args is mirrored by clockArgs in clock.go.
struct Args {
  u64 board;  // on the host: question, answer, time
  u64 stop;
  u64 rounds;
};
ARGS(clock);

GLOBAL void tell_clock(Args a) {
  Patience w = patience(a.stop);
  for (u64 k = 1; k <= a.rounds; k++) {
    while (loadAcquire8(a.board) != k)
      if (w.over()) return;
    storeRelaxed8(a.board + 16, clockNow());
    storeRelease8(a.board + 8, k);
  }
}
