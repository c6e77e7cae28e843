// Ranks that are processes on one real device: what all operations, types and reductions
// give, in streams and behind events, while nobody waits in between. Argument: ranks,
// then "time", "driver" or "buckets" to print what a step of known kernels takes, "gaps" for a host
// that is slower than its kernels, "lazy" for kernels that are loaded late, "pipeline" for messages between stages, "once" for
// one step of more ranks, "streams" for those of the driver, "fresh" for streams with work before their first call, "unlike" for ranks that come to call different counts, "end" for
// communicators that are destroyed right behind their calls, or "m" and a number for a random mixture.
#include "values.h"
#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>

enum { N = 1003, SCALED = 5, MOST = 16 };
static int ranks, me;
static ncclComm_t comm;
static cudaStream_t st, side, third;
static char *in, *out;
static char host[8 * N * MOST], back[8 * N * MOST];
int toySleep(cudaStream_t, int) __attribute__((weak));
int cuEventRecord(cudaEvent_t, cudaStream_t) __attribute__((weak));
struct dim3 { unsigned x, y, z; };
int cudaLaunchKernel(const void *, struct dim3, struct dim3, void **, size_t, cudaStream_t) __attribute__((weak));

static double value(int r, int i) { return (r + i) % 3 + 1; }

static void fill(int type) {
  for (int i = 0; i < N; i++) put(host, type, i, value(me, i));
  OK(cudaMemcpyAsync(in, host, (size_t)N * size[type], 1, st));
}

static void fetch(const char *from, size_t n) {
  OK(cudaMemcpyAsync(back, from, n, 2, st));
  OK(cudaStreamSynchronize(st));
}

static double reduced(int op, int type, int i) {
  double v = 0;
  for (int r = 0; r < ranks; r++) {
    double w = value(r, i) * (op == SCALED ? r % 2 + 1 : 1);
    v = r == 0 ? w : op == ncclProd ? v * w : op == ncclMax ? fmax(v, w) : op == ncclMin ? fmin(v, w) : v + w;
  }
  if (op == ncclAvg) v = type <= ncclUint64 ? floor(v / ranks) : v / ranks;
  if (type <= ncclUint8) v = type == ncclInt8 ? (double)(int8_t)(int64_t)v : (double)(uint8_t)(int64_t)v;
  return v;
}

static void close_to(int type, int i, double want, const char *what) {
  double part = type == ncclBfloat16 ? 0.04 : type == ncclFloat16 ? 0.01 : type == ncclFloat32 ? 1e-5 : 1e-12, got = get(back, type, i);
  if (fabs(got - want) <= (type <= ncclUint64 ? 0 : part * fabs(want))) return;
  fprintf(stderr, "%s: type %d rank %d element %d: %g and not %g\n", what, type, me, i, got, want);
  exit(1);
}

static void reductions(void) {
  for (int type = 0; type <= ncclBfloat16; type++)
    for (int op = 0; op <= SCALED; op++) {
      if ((op == ncclProd || (op == ncclAvg && type <= ncclUint8)) && ranks > 8) continue; // beyond what types hold
      int use = op;
      char by[8];
      put(by, type, 0, me % 2 + 1);
      fill(type);
      if (op == SCALED) OK(ncclRedOpCreatePreMulSum(&use, by, type, 1, comm));
      OK(ncclAllReduce(in, out, N, type, use, comm, st));
      if (op == SCALED) OK(ncclRedOpDestroy(use, comm));
      fetch(out, (size_t)N * size[type]);
      for (int i = 0; i < N; i += 5) close_to(type, i, reduced(op, type, i), "all_reduce");
    }
}

static void others(void) {
  int t = ncclInt32, per = N / ranks, root = ranks - 1;
  fill(t);
  OK(ncclReduce(in, out, N, t, ncclSum, root, comm, st));
  fetch(out, 4 * N);
  for (int i = 0; i < N && me == root; i++) close_to(t, i, reduced(ncclSum, t, i), "reduce");
  OK(ncclReduceScatter(in, out, per, t, ncclSum, comm, st));
  fetch(out, 4u * per);
  for (int i = 0; i < per; i++) close_to(t, i, reduced(ncclSum, t, me * per + i), "reduce_scatter");
  OK(ncclAllGather(in, out, per, t, comm, st));
  fetch(out, 4u * per * ranks);
  for (int i = 0; i < per * ranks; i++) close_to(t, i, value(i / per, i % per), "all_gather");
  OK(ncclBroadcast(in, out, N, t, root, comm, st));
  fetch(out, 4 * N);
  for (int i = 0; i < N; i++) close_to(t, i, value(root, i), "broadcast");
  OK(ncclAlltoAll(in, out, per, t, comm, st));
  fetch(out, 4u * per * ranks);
  for (int i = 0; i < per * ranks; i++) close_to(t, i, value(i / per, me * per + i % per), "alltoall");
  OK(ncclGather(in, out, per, t, root, comm, st));
  fetch(out, 4u * per * ranks);
  for (int i = 0; i < per * ranks && me == root; i++) close_to(t, i, value(i / per, i % per), "gather");
  OK(ncclScatter(in, out, per, t, root, comm, st));
  fetch(out, 4u * per);
  for (int i = 0; i < per; i++) close_to(t, i, value(root, me * per + i), "scatter");
  OK(ncclGroupStart());
  for (int r = 0; r < ranks; r++) {
    OK(ncclSend(in + 4 * r * per, per, t, r, comm, st));
    OK(ncclRecv(out + 4 * r * per, per, t, r, comm, st));
  }
  OK(ncclGroupEnd());
  fetch(out, 4u * per * ranks);
  for (int i = 0; i < per * ranks; i++) close_to(t, i, value(i / per, me * per + i % per), "messages");
}

// A chain of calls on two streams, joined by events, with nothing waited for until its
// end: each sees what the one before has written. In place.
static void chain(void) {
  cudaEvent_t e, f;
  int t = ncclInt64, rounds = 12, odd = me % 2;
  ncclComm_t half;
  OK(ncclCommSplit(comm, odd, me, &half, NULL));
  OK(cudaEventCreate(&e));
  OK(cudaEventCreate(&f));
  fill(t);
  for (int i = 0; i < rounds; i++) {
    OK(ncclAllReduce(in, in, N, t, ncclMax, half, st));
    OK(cudaEventRecord(e, st));
    OK(cudaStreamWaitEvent(side, e, 0));
    OK(ncclAllReduce(in, in, N, t, ncclSum, comm, side));
    OK(cudaEventRecord(f, side));
    OK(cudaStreamWaitEvent(st, f, 0));
  }
  fetch(in, 8 * N);
  int halves[2] = {(ranks + 1) / 2, ranks / 2};
  for (int i = 0; i < N; i++) {
    double v[2] = {0, 0};
    for (int r = 0; r < ranks; r++) v[r % 2] = fmax(v[r % 2], value(r, i));
    for (int k = 0; k < rounds; k++) {
      double sum = v[0] * halves[0] + v[1] * halves[1];
      v[0] = v[1] = sum;
    }
    close_to(t, i, v[odd], "chain");
  }
  // A rank sends before the other one thinks of receiving.
  int to = (me + 1) % ranks, from = (me + ranks - 1) % ranks;
  fill(t);
  OK(ncclGroupStart());
  OK(ncclSend(in, N, t, to, comm, st));
  OK(ncclRecv(out, N, t, from, comm, st));
  OK(ncclGroupEnd());
  fetch(out, 8 * N);
  for (int i = 0; i < N; i++) close_to(t, i, value(from, i), "ring");
  OK(ncclCommDestroy(half));
}

// A graph of two calls and a copy, replayed without waiting: each replay sees what the one
// before has written.
static void graphs(void) {
  enum { REPLAYS = 5 };
  int t = ncclInt64;
  cudaGraph_t g;
  cudaGraphExec_t x;
  fill(t);
  OK(cudaStreamSynchronize(st));
  OK(cudaStreamBeginCapture(st, 1));
  OK(ncclAllReduce(in, out, N, t, ncclSum, comm, st));
  OK(cudaMemcpyAsync(in, out, 8 * N, 3, st));
  OK(ncclAllReduce(in, in, N, t, ncclMax, comm, st));
  OK(cudaStreamEndCapture(st, &g));
  OK(cudaGraphInstantiate(&x, g, 0));
  for (int i = 0; i < REPLAYS; i++) OK(cudaGraphLaunch(x, st));
  OK(ncclAllReduce(in, out, N, t, ncclSum, comm, st));
  fetch(out, 8 * N);
  double all = pow(ranks, REPLAYS);
  for (int i = 0; i < N; i++) close_to(t, i, reduced(ncclSum, t, i) * all, "graph");
}

// A communicator made with several ids, of which the processes know all.
static void scalable(ncclUniqueId *ids) {
  ncclComm_t c;
  IS(ncclInvalidArgument, ncclCommInitRankScalable(&c, ranks, me, 0, ids, NULL));
  IS(ncclInvalidArgument, ncclCommInitRankScalable(&c, ranks, me, ranks + 1, ids, NULL));
  IS(ncclInvalidArgument, ncclCommInitRankScalable(&c, ranks, me, 1, NULL, NULL));
  OK(ncclCommInitRankScalable(&c, ranks, me, 2, ids, NULL));
  fill(ncclInt32);
  OK(ncclAllReduce(in, out, N, ncclInt32, ncclSum, c, st));
  fetch(out, 4 * N);
  for (int i = 0; i < N; i++) close_to(ncclInt32, i, reduced(ncclSum, ncclInt32, i), "scalable");
  OK(ncclCommDestroy(c));
}

// What is refused: memory that other processes cannot read.
static void refusals(void) {
  IS(ncclUnhandledCudaError, ncclAllReduce(host, out, N, ncclInt32, ncclSum, comm, st));
  TRUE(strstr(ncclGetLastError(comm), "cannot be read by other processes"));
  OK(ncclAllReduce(in, out, N, ncclInt32, ncclSum, comm, st)); // the communicator goes on
  OK(cudaStreamSynchronize(st));
}

// A step: kernels of 4 ms, an all_reduce behind them while kernels of 6 ms go on, and 2 ms
// when it is there. By the driver, events are recorded in a way that is not followed.
static void steps(int driver) {
  enum { STEPS = 4 };
  cudaEvent_t ev[STEPS + 1], e, f;
  for (int i = 0; i <= STEPS; i++) OK(cudaEventCreate(&ev[i]));
  OK(cudaEventCreate(&e));
  OK(cudaEventCreate(&f));
  OK(cudaEventRecord(ev[0], st));
  for (int i = 0; i < STEPS; i++) {
    OK(toySleep(st, 4000));
    OK(cudaEventRecord(e, st));
    OK(cudaStreamWaitEvent(side, e, 0));
    OK(ncclAllReduce(in, out, N, ncclFloat32, ncclSum, comm, side));
    OK(driver ? cuEventRecord(f, side) : cudaEventRecord(f, side));
    OK(toySleep(st, 6000));
    OK(cudaStreamWaitEvent(st, f, 0));
    OK(toySleep(st, 2000));
    OK(cudaEventRecord(ev[i + 1], st));
  }
  OK(cudaDeviceSynchronize());
  for (int i = 0; i < STEPS && me == 0; i++) {
    float ms;
    OK(cudaEventElapsedTime(&ms, ev[i], ev[i + 1]));
    printf("%.3f\n", ms);
  }
}

// A step of a backward pass: twelve kernels of 1 ms, launched one by one, each followed by
// an all_reduce beside the next ones, and 2 ms when all are there. In the second one so many
// small ones are launched that the host does not run ahead any further.
static void buckets(void) {
  enum { STEPS = 3, BUCKETS = 12, SMALL = 150 };
  struct dim3 one = {1, 1, 1}, us = {1, 1, 1};
  cudaEvent_t ev[STEPS + 1], e, f;
  for (int i = 0; i <= STEPS; i++) OK(cudaEventCreate(&ev[i]));
  OK(cudaEventCreate(&e));
  OK(cudaEventCreate(&f));
  OK(cudaEventRecord(ev[0], st));
  for (int i = 0; i < STEPS; i++) {
    for (int b = 0; b < BUCKETS; b++) {
      OK(toySleep(st, 1000));
      usleep(100);
      OK(cudaEventRecord(e, st));
      OK(cudaStreamWaitEvent(side, e, 0));
      OK(ncclAllReduce(in, out, N, ncclFloat32, ncclSum, comm, side));
    }
    OK(cudaEventRecord(f, side));
    OK(cudaStreamWaitEvent(st, f, 0));
    OK(toySleep(st, 2000));
    for (int k = 0; k < SMALL && i == 1; k++) OK(cudaLaunchKernel(NULL, us, one, NULL, 0, st));
    OK(cudaEventRecord(ev[i + 1], st));
  }
  OK(cudaDeviceSynchronize());
  for (int i = 0; i < STEPS && me == 0; i++) {
    float ms;
    OK(cudaEventElapsedTime(&ms, ev[i], ev[i + 1]));
    printf("%.3f\n", ms);
  }
}

// A stage's share of a microbatch, forward or backward: what comes from a neighbour is waited
// for, some small kernels and one of 1 ms run, and what goes to one is sent beside them.
static void stage(ncclComm_t c, int from, int to, cudaEvent_t e) {
  struct dim3 one = {1, 1, 1}, us = {1, 1, 1};
  enum { SMALL = 30 };
  if (from >= 0 && from < ranks) {
    OK(cudaEventRecord(e, st));
    OK(cudaStreamWaitEvent(side, e, 0));
    OK(ncclRecv(in, N, ncclFloat32, from, c, side));
    OK(cudaEventRecord(e, side));
    OK(cudaStreamWaitEvent(st, e, 0));
  }
  for (int k = 0; k < SMALL; k++) OK(cudaLaunchKernel(NULL, us, one, NULL, 0, st));
  OK(toySleep(st, 1000));
  if (to >= 0 && to < ranks) {
    OK(cudaEventRecord(e, st));
    OK(cudaStreamWaitEvent(third, e, 0));
    OK(ncclSend(out, N, ncclFloat32, to, c, third));
  }
}

// Steps of a pipeline: forward passes until the last stage has one, then one forward and one
// backward pass at a time.
static void pipeline(void) {
  enum { STEPS = 3, MICRO = 6 };
  cudaEvent_t ev[STEPS + 1], e;
  ncclComm_t back; // calls of one communicator follow each other
  OK(ncclCommSplit(comm, 0, me, &back, NULL));
  for (int i = 0; i <= STEPS; i++) OK(cudaEventCreate(&ev[i]));
  OK(cudaEventCreate(&e));
  OK(cudaEventRecord(ev[0], st));
  for (int i = 0; i < STEPS; i++) {
    int first = ranks - me < MICRO ? ranks - me : MICRO, done = 0;
    for (int m = 0; m < first; m++) stage(comm, me - 1, me + 1, e);
    for (int m = first; m < MICRO; m++, done++) {
      stage(back, me + 1, me - 1, e);
      stage(comm, me - 1, me + 1, e);
    }
    for (; done < MICRO; done++) stage(back, me + 1, me - 1, e);
    OK(toySleep(st, 2000));
    OK(cudaEventRecord(ev[i + 1], st));
  }
  OK(cudaDeviceSynchronize());
  for (int i = 0; i < STEPS && me == 0; i++) {
    float ms;
    OK(cudaEventElapsedTime(&ms, ev[i], ev[i + 1]));
    printf("%.3f\n", ms);
  }
  OK(ncclCommDestroy(back));
}

// What hosts may do, in an order that a seed gives and all ranks have: calls and kernels on three
// streams that wait for each other's events, waits of the host, polls, memory that is asked for.
static void mixed(unsigned seed) {
  enum { ACTIONS = 400, EVENTS = 6 };
  struct dim3 one = {1, 1, 1}, us;
  cudaStream_t on[3] = {st, side, third};
  cudaEvent_t e[EVENTS];
  unsigned own = seed * 31 + (unsigned)me;
  for (int i = 0; i < EVENTS; i++) OK(cudaEventCreate(&e[i]));
  OK(ncclAllReduce(in, out, N, ncclFloat32, ncclSum, comm, st)); // what runs before is not in turns
  for (int i = 0; i < ACTIONS; i++) {
    int what = rand_r(&seed) % 100, which = rand_r(&seed) % EVENTS;
    cudaStream_t s = on[rand_r(&seed) % 3];
    us = (struct dim3){(unsigned)rand_r(&own) % 200 + 1, 1, 1};
    if (what < 50) OK(cudaLaunchKernel(NULL, us, one, NULL, 0, s));
    else if (what < 66) OK(cudaEventRecord(e[which], s));
    else if (what < 82) OK(cudaStreamWaitEvent(s, e[which], 0));
    else if (what < 97) OK(ncclAllReduce(in, out, N, ncclFloat32, ncclSum, comm, s));
    else if (what < 98) OK(cudaEventSynchronize(e[which]));
    else if (what < 99) OK(cudaStreamSynchronize(s));
    else OK(cudaFree(out + 1)); // which waits, and does nothing else here
  }
  OK(cudaDeviceSynchronize());
}

static void *records(void *e) { // the first that this thread asks of CUDA
  OK(cudaEventRecord(e, side));
  return NULL;
}

// A host that takes longer than its kernels: ten of 1 ms, launched 2 ms apart, before each
// call; another thread records an event meanwhile, and now and then memory is freed.
static void gaps(void) {
  enum { STEPS = 4, KERNELS = 10 };
  struct dim3 one = {1, 1, 1}, us = {1000, 1, 1};
  cudaEvent_t e;
  OK(cudaEventCreate(&e));
  for (int i = 0; i < STEPS; i++) {
    OK(ncclAllReduce(in, out, N, ncclFloat32, ncclSum, comm, st));
    for (int k = 0; k < KERNELS; k++) {
      OK(cudaLaunchKernel(NULL, us, one, NULL, 0, st));
      usleep(2000);
    }
    pthread_t t;
    TRUE(pthread_create(&t, NULL, records, e) == 0);
    pthread_join(t, NULL);
    if (i == 1) OK(cudaFree(out + 1));
  }
  int polls = 0; // a host that does nothing but ask waits
  OK(cudaLaunchKernel(NULL, us, one, NULL, 0, st));
  while (cudaStreamQuery(st) != 0) polls++;
  TRUE(polls < 1000);
  OK(ncclAllReduce(in, out, N, ncclFloat32, ncclSum, comm, st));
  OK(cudaStreamSynchronize(st));
}

// Steps of an all_reduce and many kernels, of which new ones are loaded in the first steps and
// late, when the host runs ahead of its calls.
static void lazy(void) {
  enum { STEPS = 14, KERNELS = 100, LATE = 12 };
  static char kernel[STEPS];
  struct dim3 one = {1, 1, 1}, us = {5, 1, 1};
  for (int i = 0; i < STEPS; i++) {
    OK(ncclAllReduce(in, out, N, ncclFloat32, ncclSum, comm, side));
    for (int k = 0; k < KERNELS; k++) OK(cudaLaunchKernel(&kernel[i == LATE], us, one, NULL, 0, st));
    OK(cudaLaunchKernel(&kernel[i < 3 || i == LATE ? i : 0], us, one, NULL, 0, st));
  }
  OK(cudaDeviceSynchronize());
}

// A step of many ranks: they all have the GPU in turns, and get the sum of all.
static void once(void) {
  enum { BUCKETS = 2 };
  for (int b = 0; b < BUCKETS; b++) {
    fill(ncclInt32);
    OK(toySleep(st, 200));
    OK(ncclAllReduce(in, out, N, ncclInt32, ncclSum, comm, st));
    OK(toySleep(st, 100));
  }
  fetch(out, 4 * N);
  for (int i = 0; i < N; i++) close_to(ncclInt32, i, reduced(ncclSum, ncclInt32, i), "once");
}

// Ranks that call the same for a while, and then different counts: hosts that run ahead of their
// calls learn of that at a later one, and no stream waits for ever. It prints what was called.
static int unlike(void) {
  enum { STEPS = 100, SAME = 20 };
  struct dim3 one = {1, 1, 1}, us = {20, 1, 1};
  static char kernel;
  int i = 0, e = 0;
  for (; i < STEPS && !e; i++) {
    OK(cudaLaunchKernel(&kernel, us, one, NULL, 0, st));
    e = ncclAllReduce(in, out, (size_t)(i < SAME ? N : N - me), ncclFloat32, ncclSum, comm, st);
    if (i > SAME) usleep(1000);
  }
  OK(cudaDeviceSynchronize());
  printf("rank %d: %d %s\n", me, e, i < STEPS ? "in time" : "too late");
  fflush(stdout);
  OK(ncclCommAbort(comm));
  int status;
  while (me == ranks - 1 && wait(&status) > 0) {
  }
  return 0;
}

// Calls that the host does not wait for, and right behind them what it asks of their communicator:
// for its errors and its end, which come behind all of the calls.
static void end(void) {
  enum { TIMES = 10, CALLS = 30 };
  struct dim3 one = {1, 1, 1}, us = {20, 1, 1};
  static char kernel;
  for (int i = 0; i < TIMES; i++) {
    ncclComm_t all;
    int e = 0;
    OK(ncclCommSplit(comm, 0, me, &all, NULL));
    for (int k = 0; k < CALLS; k++) {
      OK(cudaLaunchKernel(&kernel, us, one, NULL, 0, st));
      OK(ncclAllReduce(in, out, N, ncclInt32, ncclSum, all, st));
    }
    if (i % 2) OK(ncclCommGetAsyncError(all, &e));
    OK(e);
    OK(ncclCommDestroy(all));
  }
  fill(ncclInt32);
  OK(ncclAllReduce(in, out, N, ncclInt32, ncclSum, comm, st));
  fetch(out, 4 * N);
  for (int i = 0; i < N; i++) close_to(ncclInt32, i, reduced(ncclSum, ncclInt32, i), "end");
}

// Streams of a program that makes, waits for and destroys them by functions of the driver that it looks
// up itself, as JAX does: they are not asked about any more.
static void streams(void) {
  void *lib = dlopen("libcuda.so.1", RTLD_NOW);
  int (*create)(cudaStream_t *, unsigned) = (int (*)(cudaStream_t *, unsigned))dlsym(lib, "cuStreamCreate");
  int (*sync)(cudaStream_t) = (int (*)(cudaStream_t))dlsym(lib, "cuStreamSynchronize");
  int (*destroy)(cudaStream_t) = (int (*)(cudaStream_t))dlsym(lib, "cuStreamDestroy_v2");
  if (!create || !sync || !destroy) exit(2);
  fill(ncclInt32);
  OK(cudaStreamSynchronize(st));
  for (int i = 0; i < 5; i++) {
    cudaStream_t own;
    OK(create(&own, 1));
    OK(ncclAllReduce(in, out, N, ncclInt32, ncclSum, comm, own));
    OK(sync(own));
    OK(destroy(own));
    OK(ncclAllReduce(in, out, N, ncclInt32, ncclSum, comm, st));
    fetch(out, 4 * N);
  }
  for (int i = 0; i < N; i++) close_to(ncclInt32, i, reduced(ncclSum, ncclInt32, i), "streams");
}

// A stream whose first call of NCCL comes behind work that nothing has been told of: a kernel that
// is launched by no function of the runtime's, and a copy.
static void fresh(void) {
  enum { KERNEL_US = 30000 };
  for (int i = 0; i < 3; i++) {
    cudaStream_t own, usual = st;
    OK(cudaStreamCreateWithFlags(&own, 1));
    OK(cudaMemcpy(in, back, 4 * N, 1)); // not what is reduced below
    OK(toySleep(own, KERNEL_US));
    st = own;
    fill(ncclInt32);
    OK(ncclAllReduce(in, out, N, ncclInt32, ncclSum, comm, own));
    fetch(out, 4 * N);
    for (int k = 0; k < N; k++) close_to(ncclInt32, k, reduced(ncclSum, ncclInt32, k), "fresh");
    st = usual;
  }
}

int main(int argc, char **argv) {
  ncclUniqueId id, ids[2];
  ranks = argc > 1 ? atoi(argv[1]) : 4;
  OK(ncclGetUniqueId(&id));
  OK(ncclGetUniqueId(&ids[0]));
  OK(ncclGetUniqueId(&ids[1]));
  for (me = 0; me < ranks - 1; me++)
    if (fork() == 0) break;
  OK(cudaSetDevice(0));
  OK(ncclCommInitRank(&comm, ranks, id, me));
  OK(cudaStreamCreateWithFlags(&st, 1));
  OK(cudaStreamCreateWithFlags(&side, 1));
  OK(cudaStreamCreateWithFlags(&third, 1));
  OK(cudaMalloc((void **)&in, 8 * N * MOST));
  OK(ncclMemAlloc((void **)&out, 8 * N * MOST));
  int kinds = argc > 2;
  if (kinds) {
    switch (argv[2][0]) {
    case 't': steps(0); break;
    case 'd': steps(1); break;
    case 'g': gaps(); break;
    case 'l': lazy(); break;
    case 'p': pipeline(); break;
    case 'o': once(); break;
    case 's': streams(); break;
    case 'u': return unlike();
    case 'e': end(); break;
    case 'f': fresh(); break;
    case 'm': mixed((unsigned)atoi(argv[2] + 1)); break;
    default: buckets();
    }
  } else {
    reductions();
    others();
    chain();
    graphs();
    scalable(ids);
    refusals();
  }
  int error;
  OK(ncclCommGetAsyncError(comm, &error));
  OK(error);
  OK(ncclCommDestroy(comm));
  if (me < ranks - 1) return 0;
  int status, bad = 0;
  while (wait(&status) > 0) bad |= status;
  if (!bad && !kinds) puts("right");
  return bad != 0;
}
