// Polls all streams in turn as nccl-tests does, beside a thread that only watches, and
// prints what each size takes; devices are given or taken in any order.
#include "abi.h"
#include <pthread.h>
#include <stdatomic.h>

enum { LOOPS = 20 };
static int devices;
static ncclComm_t comm[64];
static cudaStream_t st[64];
static atomic_int over;

static void *watch(void *p) {
  while (!atomic_load(&over))
    for (int d = 0; d < devices; d++) {
      int e, s = cudaStreamQuery(st[d]);
      OK(ncclCommGetAsyncError(comm[d], &e));
      TRUE(e == 0 && (s == 0 || s == 600));
    }
  return p;
}

int main(void) {
  pthread_t t;
  OK(cudaGetDeviceCount(&devices));
  OK(ncclCommInitAll(comm, devices, NULL));
  for (int d = 0; d < devices; d++) {
    OK(cudaSetDevice(d));
    OK(cudaStreamCreateWithFlags(&st[d], 1));
  }
  TRUE(pthread_create(&t, NULL, watch, NULL) == 0);
  for (size_t n = 1024; n <= 1 << 20; n *= 32) {
    int64_t from = nanos();
    for (int k = 0; k < LOOPS; k++) {
      OK(ncclGroupStart());
      for (int d = 0; d < devices; d++) OK(ncclAllReduce((void *)4096, (void *)8192, n, ncclFloat32, ncclSum, comm[d], st[d]));
      OK(ncclGroupEnd());
    }
    int left = devices, done[64] = {0};
    while (left > 0)
      for (int d = 0; d < devices; d++) {
        if (done[d]) continue;
        int e, s = cudaStreamQuery(st[d]);
        if (s == 0) {
          done[d] = 1;
          left--;
          continue;
        }
        TRUE(s == 600);
        OK(ncclCommGetAsyncError(comm[d], &e));
        TRUE(e == 0);
      }
    printf("%zu %.2f\n", 4 * n, (double)(nanos() - from) / LOOPS);
  }
  // As Python sleeps: until a time of the clock that it sees.
  int64_t begun = nanos(), end = begun + 5000000;
  struct timespec until = {end / 1000000000, end % 1000000000};
  TRUE(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == 0 && nanos() == end);
  TRUE(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == 0 && nanos() == end); // it has passed
  atomic_store(&over, 1);
  pthread_join(t, NULL);
  for (int d = 0; d < devices; d++) OK(ncclCommDestroy(comm[d]));
  return 0;
}
