// The life of communicators, and what is refused, with NCCL's codes.
#define _GNU_SOURCE
#include "abi.h"
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { MAXDEV = 64, BYTES = 4096 };
static int devices;
static ncclComm_t comm[MAXDEV];
static cudaStream_t st[MAXDEV], other[MAXDEV];
static int32_t *in[MAXDEV], *out[MAXDEV];

#define EACH OK(ncclGroupStart()); for (int d = 0; d < devices; d++)

static void set_in(void) {
  int32_t v[BYTES / 4];
  for (int d = 0; d < devices; d++) {
    for (int i = 0; i < BYTES / 4; i++) v[i] = 100 * d + i;
    OK(cudaSetDevice(d));
    OK(cudaMemcpy(in[d], v, BYTES, 1));
  }
}

static int32_t first(int d) {
  int32_t v = -1;
  OK(cudaSetDevice(d));
  OK(cudaMemcpyAsync(&v, out[d], 4, 2, st[d]));
  OK(cudaStreamSynchronize(st[d]));
  return v;
}

// Odd and even devices are split, the last one has no color; even ones in reverse
// order, with negative keys, odd ones with equal keys.
static void split(void) {
  ncclComm_t child[MAXDEV];
  int n, r;
  EACH OK(ncclCommSplit(comm[d], d == devices - 1 ? -1 : d % 2, d % 2 ? 7 : -d, &child[d], NULL));
  OK(ncclGroupEnd());
  TRUE(child[devices - 1] == NULL);
  int evens = devices / 2, odds = devices / 2 - 1;
  for (int d = 0; d < devices - 1; d++) {
    OK(ncclCommCount(child[d], &n));
    OK(ncclCommUserRank(child[d], &r));
    TRUE(n == (d % 2 ? odds : evens));
    TRUE(r == (d % 2 ? d / 2 : evens - 1 - d / 2));
  }
  EACH if (child[d]) OK(ncclAllReduce(in[d], out[d], 4, ncclInt32, ncclSum, child[d], st[d]));
  OK(ncclGroupEnd());
  int sum[2] = {0, 0};
  for (int d = 0; d < devices - 1; d++) sum[d % 2] += 100 * d;
  TRUE(first(0) == sum[0] && first(1) == sum[1]);
  // A split of a split, and calls of several communicators in one group.
  ncclComm_t pair[MAXDEV];
  EACH if (child[d]) {
    OK(ncclCommUserRank(child[d], &r));
    OK(ncclCommSplit(child[d], r / 2, r, &pair[d], NULL));
  }
  OK(ncclGroupEnd());
  EACH if (child[d]) {
    OK(ncclAllReduce(in[d], out[d], 4, ncclInt32, ncclMax, pair[d], st[d]));
    OK(ncclAllReduce(in[d] + 64, out[d] + 64, 4, ncclInt32, ncclSum, comm[d], st[d]));
  } else OK(ncclAllReduce(in[d] + 64, out[d] + 64, 4, ncclInt32, ncclSum, comm[d], st[d]));
  OK(ncclGroupEnd());
  TRUE(first(devices - 2) == 100 * (devices - 2)); // paired with the next lower even device
  for (int d = 0; d < devices - 1; d++) {
    OK(ncclCommDestroy(pair[d]));
    OK(ncclCommFinalize(child[d]));
    IS(ncclInvalidArgument, ncclCommFinalize(child[d]));
    OK(ncclCommDestroy(child[d]));
  }
}

static void shrink(void) {
  ncclComm_t less[MAXDEV];
  int gone[2] = {devices - 1, 2}, n, r;
  EACH if (d != 2 && d != devices - 1) OK(ncclCommShrink(comm[d], gone, 2, &less[d], NULL, 0));
  OK(ncclGroupEnd());
  OK(ncclCommCount(less[3], &n));
  OK(ncclCommUserRank(less[3], &r));
  TRUE(n == devices - 2 && r == 2);
  EACH if (d != 2 && d != devices - 1) OK(ncclBroadcast(in[d], out[d], 4, ncclInt32, 2, less[d], st[d]));
  OK(ncclGroupEnd());
  TRUE(first(0) == 300);
  for (int d = 0; d < devices; d++)
    if (d != 2 && d != devices - 1) OK(ncclCommDestroy(less[d]));
  int self[1] = {0};
  IS(ncclInvalidArgument, ncclCommShrink(comm[0], self, 1, &less[0], NULL, 0));
  IS(ncclInvalidArgument, ncclCommShrink(comm[0], self, 0, &less[0], NULL, 0));
}

// Communicators that do not block are polled; a call before they are there is refused.
static void nonblocking(void) {
  ncclConfig_t cfg = NCCL_CONFIG_INITIALIZER;
  ncclComm_t c[2];
  ncclUniqueId id;
  int state, n;
  cfg.blocking = 0;
  OK(ncclGetUniqueId(&id));
  OK(cudaSetDevice(0));
  IS(ncclInProgress, ncclCommInitRankConfig(&c[0], 2, id, 0, &cfg));
  OK(ncclCommGetAsyncError(c[0], &state));
  TRUE(state == ncclInProgress);
  IS(ncclInvalidArgument, ncclAllReduce(in[0], out[0], 1, ncclInt32, ncclSum, c[0], st[0]));
  OK(ncclCommAbort(c[0]));
  OK(ncclGetUniqueId(&id));
  IS(ncclInProgress, ncclCommInitRankConfig(&c[0], 2, id, 0, &cfg));
  OK(cudaSetDevice(1));
  int res = ncclCommInitRankConfig(&c[1], 2, id, 1, &cfg);
  TRUE(res == ncclInProgress || res == ncclSuccess);
  for (int i = 0; i < 2; i++) {
    do OK(ncclCommGetAsyncError(c[i], &state));
    while (state == ncclInProgress);
    TRUE(state == ncclSuccess);
  }
  OK(ncclGroupStart());
  for (int i = 0; i < 2; i++) OK(ncclAllReduce(in[i], out[i], 1, ncclInt32, ncclSum, c[i], st[i]));
  OK(ncclGroupEnd());
  TRUE(first(1) == 100);
  OK(ncclCommCount(c[1], &n));
  TRUE(n == 2);
  for (int i = 0; i < 2; i++) OK(ncclCommDestroy(c[i]));
  cfg.magic = 1;
  IS(ncclInvalidArgument, ncclCommInitRankConfig(&c[0], 2, id, 0, &cfg));
  ncclConfig_t bad = NCCL_CONFIG_INITIALIZER;
  bad.minCTAs = 8;
  bad.maxCTAs = 4;
  IS(ncclInvalidArgument, ncclCommInitRankConfig(&c[0], 2, id, 0, &bad));
}

static void refused(void) {
  ncclComm_t c;
  ncclUniqueId id;
  int n, same[2] = {1, 1}, none[1] = {999}, op;
  OK(ncclGetUniqueId(&id));
  IS(ncclInvalidUsage, ncclGroupEnd());
  IS(ncclInvalidArgument, ncclCommInitRank(&c, 2, id, 2));
  IS(ncclInvalidArgument, ncclCommInitRank(&c, 0, id, 0));
  IS(ncclInvalidArgument, ncclCommInitRank(NULL, 1, id, 0));
  IS(ncclInvalidUsage, ncclCommInitRank(&c, 100000, id, 0));
  IS(ncclInvalidUsage, ncclCommInitAll(&c, 2, same));
  IS(ncclInvalidArgument, ncclCommInitAll(&c, 1, none));
  IS(ncclInvalidArgument, ncclCommInitAll(NULL, 1, none));
  IS(ncclInvalidArgument, ncclAllReduce(in[0], out[0], 1, ncclInt32, ncclSum, NULL, st[0]));
  IS(ncclInvalidArgument, ncclAllReduce(in[0], out[0], 1, 12, ncclSum, comm[0], st[0]));
  IS(ncclInvalidArgument, ncclAllReduce(in[0], out[0], 1, ncclInt32, 99, comm[0], st[0]));
  IS(ncclInvalidArgument, ncclBroadcast(in[0], out[0], 1, ncclInt32, devices, comm[0], st[0]));
  IS(ncclInvalidArgument, ncclSend(in[0], 1, ncclInt32, -1, comm[0], st[0]));
  IS(ncclInvalidUsage, ncclSend(in[0], 1, ncclInt32, 0, comm[0], st[0])); // to itself, without receiving
  TRUE(strlen(ncclGetLastError(comm[0])) > 10);
  IS(ncclInvalidArgument, ncclCommCount(comm[0], NULL));
  IS(ncclInvalidArgument, ncclRedOpDestroy(ncclSum, comm[0]));
  IS(ncclInvalidArgument, ncclCommSplit(comm[0], -2, 0, &c, NULL));
  IS(ncclUnhandledCudaError, ncclMemAlloc(NULL, 8));
  IS(ncclInvalidUsage, ncclCommGrow());
  OK(ncclCommDestroy(NULL));
  OK(ncclGetVersion(&n));
  TRUE(n == 22809);
  // A collective without elements is dropped; an error inside a group ends all of it.
  OK(ncclAllReduce(in[0], out[0], 0, ncclInt32, ncclSum, comm[0], st[0]));
  OK(ncclGroupStart());
  OK(ncclGroupStart());
  OK(ncclAllReduce(in[0], out[0], 1, ncclInt32, ncclSum, comm[0], st[0]));
  IS(ncclInvalidArgument, ncclAllReduce(in[1], out[1], 1, ncclInt32, 99, comm[1], st[1]));
  OK(ncclGroupEnd());
  IS(ncclInvalidArgument, ncclGroupEnd());
  OK(cudaStreamSynchronize(st[0]));
  // Use after the end.
  OK(ncclCommInitAll(&c, 1, NULL));
  OK(ncclAllReduce(in[0], out[0], 4, ncclInt32, ncclSum, c, st[0]));
  TRUE(first(0) == 0);
  OK(ncclCommDestroy(c));
  IS(ncclInvalidArgument, ncclAllReduce(in[0], out[0], 1, ncclInt32, ncclSum, c, st[0]));
  IS(ncclInvalidArgument, ncclCommDestroy(c));
  (void)op;
}

static void registration(void) {
  void *buf[2], *handle, *win;
  for (int i = 0; i < 2; i++) {
    OK(cudaSetDevice(i));
    OK(ncclMemAlloc(&buf[i], 1 << 20));
  }
  OK(ncclCommRegister(comm[0], buf[0], 1 << 20, &handle));
  OK(ncclCommDeregister(comm[0], handle));
  IS(ncclInvalidArgument, ncclCommDeregister(comm[0], handle));
  IS(ncclInvalidArgument, ncclCommRegister(comm[0], NULL, 1, &handle));
  OK(ncclGroupStart());
  for (int i = 0; i < 2; i++) OK(ncclCommWindowRegister(comm[i], buf[i], 1 << 20, &win, 1));
  OK(ncclGroupEnd());
  IS(ncclInvalidArgument, ncclCommWindowRegister(comm[0], (char *)buf[0] + 1, 100, &win, 1));
  for (int i = 0; i < 2; i++) OK(ncclMemFree(buf[i]));
}

static int called;
static void host_function(void *p) { called += *(int *)p; }

// Streams, events, a graph that is launched twice, and a function of the host.
static void streams(void) {
  cudaEvent_t a, b;
  cudaGraph_t g;
  cudaGraphExec_t x;
  float ms;
  int five = 5;
  OK(cudaEventCreate(&a));
  OK(cudaEventCreate(&b));
  EACH OK(ncclAllReduce(in[d], out[d], 16, ncclInt32, ncclSum, comm[d], other[d]));
  OK(ncclGroupEnd());
  OK(cudaSetDevice(0));
  OK(cudaEventRecord(a, other[0]));
  OK(cudaStreamWaitEvent(st[0], a, 0));
  OK(cudaLaunchHostFunc(st[0], host_function, &five));
  OK(cudaEventRecord(b, st[0]));
  OK(cudaEventSynchronize(b));
  TRUE(called == 5);
  OK(cudaEventElapsedTime(&ms, a, b));
  TRUE(ms >= 0);
  OK(cudaDeviceSynchronize());
  // Each device has a graph of its own.
  cudaGraphExec_t all[MAXDEV];
  for (int d = 0; d < devices; d++) OK(cudaStreamBeginCapture(st[d], 1));
  EACH OK(ncclAllReduce(in[d], out[d], 16, ncclInt32, ncclSum, comm[d], st[d]));
  IS(ncclInvalidUsage, ncclGroupEnd()); // the streams of one group are captured by several graphs
  for (int d = 0; d < devices; d++) OK(cudaStreamEndCapture(st[d], &g));
  for (int d = 0; d < devices; d++) {
    OK(cudaStreamBeginCapture(st[d], 1));
    OK(ncclAllReduce(in[d], out[d], 16, ncclInt32, ncclSum, comm[d], st[d]));
    OK(cudaStreamEndCapture(st[d], &g));
    OK(cudaGraphInstantiate(&x, g, 0));
    all[d] = x;
  }
  for (int k = 0; k < 2; k++)
    for (int d = 0; d < devices; d++) OK(cudaGraphLaunch(all[d], st[d]));
  TRUE(first(3) == 100 * devices * (devices - 1) / 2);
}

// One of the ranks aborts while a group is open: its calls are dropped, the others see
// an error and do not hang.
static void abortion(void) {
  ncclComm_t c[2];
  int list[2] = {0, 1}, state;
  OK(ncclCommInitAll(c, 2, list));
  OK(ncclAllReduce(in[1], out[1], 4, ncclInt32, ncclSum, c[1], st[1]));
  OK(ncclGroupStart());
  OK(ncclAllReduce(in[0], out[0], 4, ncclInt32, ncclSum, c[0], st[0]));
  OK(ncclCommAbort(c[0]));
  OK(ncclGroupEnd());
  OK(cudaStreamSynchronize(st[0]));
  IS(719, cudaStreamSynchronize(st[1]));
  OK(ncclCommGetAsyncError(c[1], &state));
  TRUE(state == ncclRemoteError);
  OK(ncclCommAbort(c[1]));
  OK(ncclCommInitAll(c, 2, list));
  OK(ncclCommRevoke(c[0], 0));
  IS(ncclInvalidUsage, ncclAllReduce(in[0], out[0], 4, ncclInt32, ncclSum, c[0], st[0]));
  IS(ncclInvalidArgument, ncclCommRevoke(c[0], 0));
  for (int i = 0; i < 2; i++) OK(ncclCommDestroy(c[i]));
}

static int64_t real_nanos(void) {
  struct timespec t;
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

// A deadline of the program's clock, which is behind the real one, is not over at once,
// and a sleep moves the program's clock and not the real one.
static void waits(void) {
  pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t c = PTHREAD_COND_INITIALIZER;
  struct timespec t, second = {1, 0};
  poll(NULL, 0, 100);
  clock_gettime(CLOCK_REALTIME, &t);
  t.tv_nsec += 50000000;
  t.tv_sec += t.tv_nsec / 1000000000;
  t.tv_nsec %= 1000000000;
  int64_t from = real_nanos();
  pthread_mutex_lock(&m);
  TRUE(pthread_cond_timedwait(&c, &m, &t) == ETIMEDOUT);
  pthread_mutex_unlock(&m);
  TRUE(real_nanos() - from > 40000000);
  from = real_nanos();
  int64_t mine = nanos();
  nanosleep(&second, NULL);
  TRUE(nanos() - mine >= 1000000000 && real_nanos() - from < 900000000);
}

// A child of fork has none of its parent's communicators, and makes its own.
static void forked(void) {
  ncclComm_t c;
  int list[1] = {0}, status;
  if (fork() == 0) {
    IS(ncclInvalidUsage, ncclAllReduce(in[0], out[0], 1, ncclInt32, ncclSum, comm[0], st[0]));
    OK(ncclCommInitAll(&c, 1, list));
    OK(ncclAllReduce(in[0], out[0], 1, ncclInt32, ncclSum, c, NULL));
    OK(cudaDeviceSynchronize());
    OK(ncclCommDestroy(c));
    exit(0);
  }
  TRUE(wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void estimate(void) {
  ncclSimInfo_t info = {sizeof info, 0x74685283, 22809, -1};
  OK(ncclGroupStart());
  OK(ncclAllReduce(in[0], out[0], 1024, ncclInt32, ncclSum, comm[0], st[0]));
  OK(ncclGroupSimulateEnd(&info));
  TRUE(info.estimatedTime > 1 && info.estimatedTime < 1000);
}

int main(void) {
  OK(cudaGetDeviceCount(&devices));
  TRUE(devices >= 6 && devices <= MAXDEV);
  OK(ncclCommInitAll(comm, devices, NULL));
  for (int d = 0; d < devices; d++) {
    OK(cudaSetDevice(d));
    OK(cudaStreamCreate(&st[d]));
    OK(cudaStreamCreate(&other[d]));
    OK(cudaMalloc((void **)&in[d], BYTES));
    OK(cudaMalloc((void **)&out[d], BYTES));
  }
  set_in();
  split();
  shrink();
  nonblocking();
  refused();
  registration();
  streams();
  abortion();
  estimate();
  waits();
  forked();
  for (int d = 0; d < devices; d++) OK(ncclCommDestroy(comm[d]));
  puts("right");
  return 0;
}
