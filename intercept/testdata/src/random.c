// Random calls of 8 processes on two communicators and two streams, by the first seed;
// how long each process really waits between them is by the second, and must not
// matter. Rank 0 prints its calls and its clock.
#include "abi.h"
#include <poll.h>
#include <sys/wait.h>

enum { RANKS = 8, CALLS = 40 };
static ncclUniqueId id;

static unsigned next(unsigned *s) { return *s = *s * 1664525u + 1013904223u, *s >> 16; }

static void call(int r, unsigned *s, ncclComm_t c, cudaStream_t st, int n, int me, char *buf) {
  static const char *const names[] = {"all_reduce", "all_gather", "broadcast", "sendrecv", "reduce_scatter"};
  unsigned what = next(s) % 5;
  size_t count = 1 + next(s) % 50000;
  if (r == 0) printf("%s %zu\n", names[what], count);
  switch (what) {
  case 0: OK(ncclAllReduce(buf, buf, count, ncclFloat32, ncclSum, c, st)); break;
  case 1: OK(ncclAllGather(buf, buf + (1 << 22), count, ncclInt8, c, st)); break;
  case 2: OK(ncclBroadcast(buf, buf, count, ncclFloat16, (int)(count % (size_t)n), c, st)); break;
  case 3:
    OK(ncclGroupStart());
    OK(ncclSend(buf, count, ncclInt8, (me + 1) % n, c, st));
    OK(ncclRecv(buf + (1 << 22), count, ncclInt8, (me + n - 1) % n, c, st));
    OK(ncclGroupEnd());
    break;
  default: OK(ncclReduceScatter(buf, buf + (1 << 22), count, ncclInt32, ncclMax, c, st));
  }
}

static void rank(int r, unsigned seed, unsigned delays) {
  ncclComm_t c[2];
  cudaStream_t st[2];
  cudaEvent_t e;
  char *buf;
  int n, me;
  int64_t from = 0;
  delays = delays * 977u + (unsigned)r * 131u;
  OK(cudaSetDevice(r));
  OK(ncclCommInitRank(&c[0], RANKS, id, r));
  OK(ncclCommSplit(c[0], r % 2, -r, &c[1], NULL));
  for (int i = 0; i < 2; i++) OK(cudaStreamCreateWithFlags(&st[i], 1));
  OK(cudaEventCreate(&e));
  OK(cudaMalloc((void **)&buf, 1 << 23));
  for (int k = 0; k < CALLS; k++) {
    if (k == 0) from = nanos();
    unsigned which = next(&seed) % 2, stream = next(&seed) % 2, sync = next(&seed) % 4;
    OK(ncclCommCount(c[which], &n));
    OK(ncclCommUserRank(c[which], &me));
    call(r, &seed, c[which], st[stream], n, me, buf);
    if (sync == 0) OK(cudaStreamSynchronize(st[stream]));
    if (sync == 1) {
      OK(cudaEventRecord(e, st[stream]));
      OK(cudaStreamWaitEvent(st[!stream], e, 0));
    }
    if (next(&delays) % 4 == 0) poll(NULL, 0, (int)(next(&delays) % 4));
  }
  OK(cudaDeviceSynchronize());
  if (r == 0) printf("%lld ns\n", (long long)(nanos() - from));
  OK(ncclCommDestroy(c[1]));
  OK(ncclCommDestroy(c[0]));
}

int main(int argc, char **argv) {
  int status;
  TRUE(argc == 3);
  OK(ncclGetUniqueId(&id));
  for (int r = 0; r < RANKS; r++)
    if (fork() == 0) {
      rank(r, (unsigned)atoi(argv[1]), (unsigned)atoi(argv[2]));
      exit(0);
    }
  while (wait(&status) > 0) TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  return 0;
}
