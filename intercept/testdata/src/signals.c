// A signal every 100 us of the real clock, from before the first call, that restarts nothing which
// it interrupts.
#include "abi.h"
#include <signal.h>
#include <sys/time.h>

static volatile int alarms;
static void on_alarm(int s) { alarms += s == SIGALRM; }

int main(void) {
  struct sigaction now = {.sa_handler = on_alarm};
  struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
  ncclComm_t c[4];
  cudaStream_t st[4];
  TRUE(sigaction(SIGALRM, &now, NULL) == 0 && setitimer(ITIMER_REAL, &often, NULL) == 0);
  OK(ncclCommInitAll(c, 4, NULL));
  for (int d = 0; d < 4; d++) {
    OK(cudaSetDevice(d));
    OK(cudaStreamCreate(&st[d]));
  }
  for (int i = 0; i < 20 || (alarms < 50 && i < 1000000); i++) {
    OK(ncclGroupStart());
    for (int d = 0; d < 4; d++) OK(ncclAllReduce((void *)4096, (void *)8192, 16, ncclInt32, ncclMax, c[d], st[d]));
    OK(ncclGroupEnd());
    OK(cudaStreamSynchronize(st[i % 4]));
  }
  TRUE(setitimer(ITIMER_REAL, &never, NULL) == 0 && alarms >= 50);
  for (int d = 0; d < 4; d++) OK(ncclCommDestroy(c[d]));
  puts("right");
  return 0;
}
