// What a rank does in its life, the same whether ranks are threads (no argument), processes
// ("fork") or those of a launcher (Open MPI): collectives, communicators split by color and key
// and shrunk, one that does not block, several in a group, messages, and an abort amid a group.
// Needs --data: what is received is compared.
#include "abi.h"
#include <pthread.h>
#include <sys/wait.h>

enum { N = 64, MOST = 64 };
static ncclUniqueId ids[2];
static int ranks;

struct rank {
  int me;
  ncclComm_t all;
  cudaStream_t s, side;
  cudaEvent_t e;
  int32_t *in, *out;
};

static int value(int rank, int i) { return 100 * rank + i; }

static const int32_t *fetch(struct rank *r, int n, int32_t *to) {
  OK(cudaMemcpyAsync(to, r->out, 4u * (size_t)n, 2, r->s));
  OK(cudaStreamSynchronize(r->s));
  return to;
}

static void collectives(struct rank *r) {
  int32_t got[N * MOST];
  OK(ncclAllReduce(r->in, r->out, N, ncclInt32, ncclSum, r->all, r->s));
  fetch(r, N, got);
  for (int i = 0; i < N; i++) TRUE(got[i] == 100 * ranks * (ranks - 1) / 2 + ranks * i);
  OK(ncclAllGather(r->in, r->out, N / 4, ncclInt32, r->all, r->s));
  fetch(r, N / 4 * ranks, got);
  for (int i = 0; i < N / 4 * ranks; i++) TRUE(got[i] == value(i / (N / 4), i % (N / 4)));
  // Two in a group, in the order of their calls.
  OK(ncclGroupStart());
  OK(ncclBroadcast(r->in, r->out, N, ncclInt32, ranks - 1, r->all, r->s));
  OK(ncclReduceScatter(r->in, r->out + N, N / ranks, ncclInt32, ncclMax, r->all, r->s));
  OK(ncclGroupEnd());
  fetch(r, N + N / ranks, got);
  for (int i = 0; i < N; i++) TRUE(got[i] == value(ranks - 1, i));
  for (int i = 0; i < N / ranks; i++) TRUE(got[N + i] == value(ranks - 1, r->me * (N / ranks) + i));
}

// messages are a ring, an alltoall and a gather of sends and receives.
static void messages(struct rank *r, ncclComm_t c) {
  int32_t got[N * MOST];
  int n, me, part = 4;
  OK(ncclCommCount(c, &n));
  OK(ncclCommUserRank(c, &me));
  OK(ncclGroupStart());
  OK(ncclSend(&r->in[0], N, ncclInt32, (me + 1) % n, c, r->s));
  OK(ncclRecv(&r->out[0], N, ncclInt32, (me + n - 1) % n, c, r->s));
  OK(ncclGroupEnd());
  fetch(r, N, got);
  for (int i = 1; i < N; i++) TRUE(got[i] - got[0] == i && got[0] != r->in[0]);
  OK(ncclGroupStart());
  for (int p = 0; p < n; p++) {
    OK(ncclSend(r->in + p * part, (size_t)part, ncclInt32, p, c, r->s));
    OK(ncclRecv(r->out + p * part, (size_t)part, ncclInt32, p, c, r->s));
  }
  OK(ncclGroupEnd());
  fetch(r, n * part, got);
  for (int i = 0; i < n * part; i++) TRUE(got[i] % 100 == me * part + i % part);
  OK(ncclGroupStart());
  OK(ncclSend(r->in, (size_t)part, ncclInt32, 0, c, r->s));
  for (int p = 0; p < n && me == 0; p++) OK(ncclRecv(r->out + p * part, (size_t)part, ncclInt32, p, c, r->s));
  OK(ncclGroupEnd());
  fetch(r, n * part, got);
  for (int i = 0; i < n * part && me == 0; i++) TRUE(got[i] % 100 == i % part);
}

// Even and odd ranks, in reverse order, and pairs of them; the last rank has no pair's color.
static void splits(struct rank *r) {
  ncclComm_t half, pair = NULL;
  int n, me;
  int32_t got[N];
  OK(ncclCommSplit(r->all, r->me % 2, -r->me, &half, NULL));
  OK(ncclCommCount(half, &n));
  OK(ncclCommUserRank(half, &me));
  TRUE(n == ranks / 2 && me == n - 1 - r->me / 2);
  // Beside each other, on a stream each.
  OK(ncclAllReduce(r->in, r->out, N, ncclInt32, ncclMin, half, r->s));
  OK(ncclAllReduce(r->in, r->out + N, N, ncclInt32, ncclMin, r->all, r->side));
  OK(cudaEventRecord(r->e, r->side));
  OK(cudaStreamWaitEvent(r->s, r->e, 0));
  fetch(r, N, got);
  for (int i = 0; i < N; i++) TRUE(got[i] == value(r->me % 2, i));
  // Both in a group.
  OK(ncclGroupStart());
  OK(ncclAllReduce(r->in, r->out, N, ncclInt32, ncclMax, half, r->s));
  OK(ncclAllReduce(r->in, r->out + N, N, ncclInt32, ncclSum, r->all, r->s));
  OK(ncclGroupEnd());
  fetch(r, N, got);
  for (int i = 0; i < N; i++) TRUE(got[i] == value(ranks - 2 + r->me % 2, i));
  messages(r, half);
  OK(ncclCommSplit(half, r->me == ranks - 1 ? -1 : me / 2, 7, &pair, NULL));
  TRUE((pair == NULL) == (r->me == ranks - 1));
  if (pair && r->me != ranks - 3) { // whose partner is the last rank
    OK(ncclAllReduce(r->in, r->out, N, ncclInt32, ncclSum, pair, r->s));
    fetch(r, N, got);
    int with = me % 2 ? r->me + 2 : r->me - 2; // ranks of half are in reverse order
    for (int i = 0; i < N; i++) TRUE(got[i] == value(r->me, i) + value(with, i));
  }
  if (pair) OK(ncclCommDestroy(pair));
  OK(ncclCommFinalize(half));
  OK(ncclCommDestroy(half));
}

static void shrink(struct rank *r) {
  int gone[2] = {ranks - 1, 1}, n, me;
  int32_t got[N];
  ncclComm_t less;
  if (r->me == gone[0] || r->me == gone[1]) return;
  OK(ncclCommShrink(r->all, gone, 2, &less, NULL, 0));
  OK(ncclCommCount(less, &n));
  OK(ncclCommUserRank(less, &me));
  TRUE(n == ranks - 2 && me == (r->me > 1 ? r->me - 1 : r->me));
  OK(ncclReduce(r->in, r->out, N, ncclInt32, ncclSum, 1, less, r->s));
  fetch(r, N, got);
  int sum = 100 * (ranks * (ranks - 1) / 2 - 1 - (ranks - 1));
  for (int i = 0; i < N && me == 1; i++) TRUE(got[i] == sum + n * i);
  OK(ncclCommDestroy(less));
}

static void polled(struct rank *r) {
  ncclConfig_t cfg = NCCL_CONFIG_INITIALIZER;
  ncclComm_t c;
  int32_t got[N];
  int state;
  cfg.blocking = 0;
  state = ncclCommInitRankConfig(&c, ranks, ids[1], ranks - 1 - r->me, &cfg);
  TRUE(state == ncclInProgress || state == ncclSuccess);
  do OK(ncclCommGetAsyncError(c, &state));
  while (state == ncclInProgress);
  OK(state);
  OK(ncclBroadcast(r->in, r->out, N, ncclInt32, 0, c, r->s));
  fetch(r, N, got);
  for (int i = 0; i < N; i++) TRUE(got[i] == value(ranks - 1, i));
  OK(ncclCommFinalize(c));
  OK(ncclCommDestroy(c));
}

// Even ranks abort a communicator of two while a group of theirs is open: its calls are dropped,
// and the other rank gets an error, at the call or behind it.
static void aborted(struct rank *r) {
  ncclComm_t pair;
  int state;
  OK(ncclCommSplit(r->all, r->me / 2, 0, &pair, NULL));
  if (r->me % 2 == 0) {
    OK(ncclGroupStart());
    OK(ncclAllReduce(r->in, r->out, N, ncclInt32, ncclSum, pair, r->s));
    OK(ncclCommAbort(pair));
    OK(ncclGroupEnd());
    OK(cudaStreamSynchronize(r->s));
    return;
  }
  state = ncclAllReduce(r->in, r->out, N, ncclInt32, ncclSum, pair, r->side);
  TRUE(state == ncclSuccess || state == ncclRemoteError);
  if (state == ncclSuccess) IS(719, cudaStreamSynchronize(r->side));
  OK(ncclCommGetAsyncError(pair, &state));
  TRUE(state == ncclRemoteError);
  OK(ncclCommAbort(pair));
}

static void run(int me) {
  struct rank r = {.me = me};
  int32_t values[N];
  OK(cudaSetDevice(me));
  OK(ncclCommInitRank(&r.all, ranks, ids[0], me));
  OK(cudaStreamCreateWithFlags(&r.s, 1));
  OK(cudaStreamCreateWithFlags(&r.side, 1));
  OK(cudaEventCreate(&r.e));
  OK(ncclMemAlloc((void **)&r.in, 4 * N));
  OK(cudaMalloc((void **)&r.out, 4 * N * MOST));
  for (int i = 0; i < N; i++) values[i] = value(me, i);
  OK(cudaMemcpy(r.in, values, sizeof values, 1));
  collectives(&r);
  splits(&r);
  shrink(&r);
  polled(&r);
  aborted(&r);
  OK(ncclCommFinalize(r.all));
  OK(ncclCommDestroy(r.all));
  OK(ncclMemFree(r.in));
}

static void *thread(void *p) {
  run((int)(intptr_t)p);
  return NULL;
}

int main(int argc, char **argv) {
  const char *launched = getenv("OMPI_COMM_WORLD_RANK");
  pthread_t t[MOST];
  int status;
  OK(cudaGetDeviceCount(&ranks));
  TRUE(ranks >= 4 && ranks <= MOST && ranks % 2 == 0);
  for (int i = 0; i < 2; i++) OK(ncclGetUniqueId(&ids[i])); // a launcher's are those of NCCL_COMM_ID
  if (launched) {
    run(atoi(launched));
    if (!strcmp(launched, "0")) puts("right");
    return 0;
  }
  if (argc > 1) {
    for (int r = 0; r < ranks; r++)
      if (fork() == 0) {
        run(r);
        exit(0);
      }
    while (wait(&status) > 0) TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  } else {
    for (int r = 0; r < ranks; r++) TRUE(pthread_create(&t[r], NULL, thread, (void *)(intptr_t)r) == 0);
    for (int r = 0; r < ranks; r++) pthread_join(t[r], NULL);
  }
  puts("right");
  return 0;
}
