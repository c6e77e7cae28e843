// Processes of a job whose ranks are a grid: tp ranks that are neighbors, and dp (or stages) of such
// groups. The processes are all ranks, or those at the places of a smaller grid of a x b.
#include "abi.h"
#include <sys/wait.h>

static ncclComm_t split(ncclComm_t from, int color, int key, int size, int rank) {
  ncclComm_t c;
  int n, r;
  OK(ncclCommSplit(from, color, key, &c, NULL));
  if (color < 0) return NULL;
  OK(ncclCommCount(c, &n));
  OK(ncclCommUserRank(c, &r));
  TRUE(n == size && r == rank);
  return c;
}

// Groups of tensor and data parallelism, a group of both at a time, and one that is split again.
static void groups(ncclComm_t world, int rank, int tp, int dp, cudaStream_t s) {
  int t = rank % tp, d = rank / tp, n = tp * dp;
  ncclComm_t row = split(world, d, t, tp, t), column = split(world, t, rank, dp, d), back = split(world, 7, n - rank, n, n - 1 - rank);
  ncclComm_t one = split(row, 100 + t, 0, 1, 0), again = split(column, 0, 0, dp, d);
  for (int i = 0; i < 2; i++) {
    OK(ncclAllReduce((void *)4096, (void *)8192, 5000, ncclBfloat16, ncclSum, row, s));
    OK(ncclReduceScatter((void *)4096, (void *)8192, 100000, ncclFloat32, ncclSum, column, s));
    OK(ncclBroadcast((void *)4096, (void *)8192, 1000, ncclFloat16, 1, back, s));
    OK(ncclAllGather((void *)4096, (void *)8192, 100, ncclInt8, again, s));
    OK(ncclAllReduce((void *)4096, (void *)8192, 8, ncclInt32, ncclSum, one, s));
    // A ring in each column, as context parallelism has it.
    OK(ncclGroupStart());
    OK(ncclSend((void *)4096, 30000, ncclInt8, (d + 1) % dp, column, s));
    OK(ncclRecv((void *)8192, 30000, ncclInt8, (d + dp - 1) % dp, column, s));
    OK(ncclGroupEnd());
  }
  // As PyTorch splits: a call for each group, without a color by the ranks of others.
  for (int i = 0; i < tp; i++) {
    ncclComm_t mine = split(world, t == i ? 12345 + 77 * i : -1, d, dp, d);
    if (mine) OK(ncclAllReduce((void *)4096, (void *)8192, 7000, ncclFloat32, ncclSum, mine, s));
  }
}

// Stages of a pipeline, whose ranks send to the next stage on a communicator of all and on one of the
// pipeline; gradients of each stage are reduced.
static void stages(ncclComm_t world, int rank, int dp, int pp, cudaStream_t s) {
  int d = rank % dp, p = rank / dp;
  ncclComm_t pipe = split(world, d, p, pp, p), data = split(world, p * dp, rank, dp, d);
  for (int i = 0; i < 3; i++) {
    if (p > 0) OK(ncclRecv((void *)4096, 1 << 18, ncclFloat16, i ? p - 1 : rank - dp, i ? pipe : world, s));
    if (p < pp - 1) OK(ncclSend((void *)4096, 1 << 18, ncclFloat16, i ? p + 1 : rank + dp, i ? pipe : world, s));
  }
  OK(ncclAllReduce((void *)4096, (void *)8192, 1 << 20, ncclFloat32, ncclSum, data, s));
}

// Groups whose ranks make communicators with ids of their own.
static void inits(const ncclUniqueId *ids, int rank, int tp, int dp, cudaStream_t s) {
  int t = rank % tp, d = rank / tp;
  ncclComm_t row, column;
  OK(ncclCommInitRank(&row, tp, ids[d], t));
  OK(ncclCommInitRank(&column, dp, ids[dp + t], d));
  for (int i = 0; i < 2; i++) {
    OK(ncclAllReduce((void *)4096, (void *)8192, 5000, ncclBfloat16, ncclSum, row, s));
    OK(ncclReduceScatter((void *)4096, (void *)8192, 100000, ncclFloat32, ncclSum, column, s));
    ncclComm_t one = split(row, t, 0, 1, 0);
    OK(ncclAllReduce((void *)4096, (void *)8192, 5000, ncclBfloat16, ncclSum, one, s));
  }
}

// A rank sends to rank 0: peers that are not as far away.
static void gather(ncclComm_t world, int rank, int n, cudaStream_t s) {
  OK(ncclGroupStart());
  for (int r = 0; r < n && rank == 0; r++) OK(ncclRecv((void *)8192, 10, ncclInt8, r, world, s));
  OK(ncclSend((void *)4096, 10, ncclInt8, 0, world, s));
  OK(ncclGroupEnd());
}

int main(int argc, char **argv) {
  const char *what = argv[1];
  int x = atoi(argv[2]), y = atoi(argv[3]), a = atoi(argv[4]), b = atoi(argv[5]), n = x * y, status;
  ncclUniqueId id;
  OK(ncclGetUniqueId(&id));
  ncclUniqueId ids[64];
  for (int i = 0; i < x + y && i < 64; i++) OK(ncclGetUniqueId(&ids[i]));
  for (int p = 0; p < a * b; p++) {
    if (fork()) continue;
    ncclComm_t world;
    cudaStream_t s;
    int rank = p % a + p / a * x;
    OK(cudaSetDevice(rank));
    OK(ncclCommInitRank(&world, n, id, rank));
    OK(cudaStreamCreate(&s));
    int64_t from = nanos();
    if (!strcmp(what, "groups")) groups(world, rank, x, y, s);
    if (!strcmp(what, "stages")) stages(world, rank, x, y, s);
    if (!strcmp(what, "inits")) inits(ids, rank, x, y, s);
    if (!strcmp(what, "gather")) gather(world, rank, n, s);
    if (!strcmp(what, "colors")) {
      ncclComm_t c;
      IS(ncclInvalidUsage, ncclCommSplit(world, rank / x, 0, &c, NULL));
      printf("%s\n", ncclGetLastError(world));
      exit(0);
    }
    OK(cudaStreamSynchronize(s));
    if (rank == 0) printf("%lld\n", (long long)(nanos() - from));
    exit(0);
  }
  while (wait(&status) > 0) TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  return 0;
}
