// Runs a list of groups as 8 processes, on two communicators (all ranks; even and odd ones in
// reverse order) and two streams. A line of the file is a call, "function communicator stream
// count type reduction root", where the function is NCCL's number and 5 a send and a receive in a
// ring, or "end" of a group. The second argument is how long processes really wait in between.
#include "abi.h"
#include <poll.h>
#include <sys/wait.h>

enum { RANKS = 8 };

static void call(const char *line, const ncclComm_t *c, const cudaStream_t *st) {
  int f, comm, stream, type, op, root, n, me;
  size_t count;
  char *s = (char *)4096, *r = (char *)(1 << 30);
  TRUE(sscanf(line, "%d %d %d %zu %d %d %d", &f, &comm, &stream, &count, &type, &op, &root) == 7);
  OK(ncclCommCount(c[comm], &n));
  OK(ncclCommUserRank(c[comm], &me));
  switch (f) {
  case 0: OK(ncclBroadcast(s, r, count, type, root, c[comm], st[stream])); break;
  case 1: OK(ncclReduce(s, r, count, type, op, root, c[comm], st[stream])); break;
  case 2: OK(ncclAllGather(s, r, count, type, c[comm], st[stream])); break;
  case 3: OK(ncclReduceScatter(s, r, count, type, op, c[comm], st[stream])); break;
  case 4: OK(ncclAllReduce(s, r, count, type, op, c[comm], st[stream])); break;
  case 5:
    OK(ncclSend(s, count, type, (me + 1) % n, c[comm], st[stream]));
    OK(ncclRecv(r, count, type, (me + n - 1) % n, c[comm], st[stream]));
    break;
  case 6: OK(ncclAlltoAll(s, r, count, type, c[comm], st[stream])); break;
  case 7: OK(ncclGather(s, r, count, type, root, c[comm], st[stream])); break;
  case 8: OK(ncclScatter(s, r, count, type, root, c[comm], st[stream])); break;
  default: TRUE(f < 9);
  }
}

int main(int argc, char **argv) {
  ncclUniqueId id;
  int status;
  unsigned delays = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
  TRUE(argc == 3);
  OK(ncclGetUniqueId(&id));
  for (int me = 0; me < RANKS; me++) {
    if (fork()) continue;
    ncclComm_t c[2];
    cudaStream_t st[2];
    char line[200];
    FILE *f = fopen(argv[1], "r");
    TRUE(f);
    OK(cudaSetDevice(me));
    OK(ncclCommInitRank(&c[0], RANKS, id, me));
    OK(ncclCommSplit(c[0], me % 2, -me, &c[1], NULL));
    for (int i = 0; i < 2; i++) OK(cudaStreamCreateWithFlags(&st[i], 1));
    int64_t from = nanos();
    OK(ncclGroupStart());
    while (fgets(line, sizeof line, f)) {
      if (strcmp(line, "end\n")) {
        call(line, c, st);
        continue;
      }
      OK(ncclGroupEnd());
      unsigned x = delays * 2654435761u + (unsigned)me * 40503u;
      delays += delays > 0;
      if (delays && x >> 28 < 4) poll(NULL, 0, (int)(x >> 24 & 3));
      OK(ncclGroupStart());
    }
    OK(ncclGroupEnd());
    OK(cudaDeviceSynchronize());
    if (me == 0) printf("%lld\n", (long long)(nanos() - from));
    for (int i = 0; i < 2; i++) OK(ncclCommDestroy(c[i]));
    exit(0);
  }
  while (wait(&status) > 0) TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  return 0;
}
