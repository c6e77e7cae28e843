// Every operation, type and reduction on all devices of one thread, with the
// results compared. Needs --data.
#include "abi.h"
#include "values.h"

enum { N = 1003, MAXDEV = 64 };
static int devices;
static ncclComm_t comm[MAXDEV];
static cudaStream_t st[MAXDEV];
static void *in[MAXDEV], *out[MAXDEV];

// Values are small integers, which every type holds exactly.
static double value(int rank, int i) { return (rank + i) % 3 + 1; }

static char host[8 * N * MAXDEV];

static void fill(int type, int n) {
  for (int d = 0; d < devices; d++) {
    for (int i = 0; i < n; i++) put(host, type, i, value(d, i));
    OK(cudaSetDevice(d));
    OK(cudaMemcpyAsync(in[d], host, (size_t)n * size[type], 1, st[d]));
    OK(cudaMemset(out[d], 0x55, 8 * N * (size_t)devices));
  }
}

static void *result(int d, size_t bytes) {
  OK(cudaSetDevice(d));
  OK(cudaMemcpyAsync(host, out[d], bytes, 2, st[d]));
  OK(cudaStreamSynchronize(st[d]));
  return host;
}

static int bits(int type) { return type == ncclInt8 || type == ncclUint8 ? 8 : 64; }

// reduced is the reduction of all ranks' element i.
static double reduced(int op, int type, int i) {
  double v = value(0, i);
  for (int d = 1; d < devices; d++) {
    double w = value(d, i);
    v = op == ncclProd ? v * w : op == ncclMax ? (v > w ? v : w) : op == ncclMin ? (v < w ? v : w) : v + w;
  }
  if (op == ncclAvg) v = type <= ncclUint64 ? (double)(int64_t)(v / devices) : v / devices;
  if (bits(type) == 8) v = type == ncclInt8 ? (double)(int8_t)(int64_t)v : (double)(uint8_t)(int64_t)v;
  return v;
}

static int near(double got, double want, int type) {
  double part = type == ncclBfloat16 ? 0.04 : type == ncclFloat16 ? 0.01 : type == ncclFloat32 ? 1e-5 : 1e-12;
  return fabs(got - want) <= (type <= ncclUint64 ? 0 : part * fabs(want));
}

#define EACH OK(ncclGroupStart()); for (int d = 0; d < devices; d++)

static void reductions(void) {
  for (int type = 0; type <= ncclBfloat16; type++)
    for (int op = 0; op <= ncclAvg; op++) {
      if (op == ncclProd && (type == ncclFloat16 || type == ncclBfloat16)) continue; // beyond what the type holds exactly
      if (op == ncclProd && (type == ncclInt32 || type == ncclUint32) && devices > 16) continue;
      fill(type, N);
      EACH OK(ncclAllReduce(in[d], out[d], N, type, op, comm[d], st[d]));
      OK(ncclGroupEnd());
      for (int d = 0; d < devices; d += devices - 1) {
        void *p = result(d, (size_t)N * size[type]);
        for (int i = 0; i < N; i += 7)
          if (!near(get(p, type, i), reduced(op, type, i), type)) {
            fprintf(stderr, "type %d op %d device %d element %d: %g and not %g\n", type, op, d, i, get(p, type, i), reduced(op, type, i));
            exit(1);
          }
      }
    }
}

static void rooted(void) {
  int root = devices / 2, n = 48;
  fill(ncclFloat32, N);
  EACH OK(ncclReduce(in[d], out[d], N, ncclFloat32, ncclSum, root, comm[d], st[d]));
  OK(ncclGroupEnd());
  float *f = result(root, N * 4);
  for (int i = 0; i < N; i++) TRUE(f[i] == (float)reduced(ncclSum, ncclFloat32, i));
  EACH OK(ncclBroadcast(in[d], out[d], N, ncclFloat32, root, comm[d], st[d]));
  OK(ncclGroupEnd());
  f = result(devices - 1, N * 4);
  for (int i = 0; i < N; i++) TRUE(f[i] == (float)value(root, i));
  EACH OK(ncclGather(in[d], out[d], n, ncclFloat32, root, comm[d], st[d]));
  OK(ncclGroupEnd());
  f = result(root, 4u * n * devices);
  for (int i = 0; i < n * devices; i++) TRUE(f[i] == (float)value(i / n, i % n));
  int per = N / devices;
  EACH OK(ncclScatter(in[d], out[d], per, ncclFloat32, root, comm[d], st[d]));
  OK(ncclGroupEnd());
  f = result(devices - 1, 4u * per);
  for (int i = 0; i < per; i++) TRUE(f[i] == (float)value(root, (devices - 1) * per + i));
}

static void spread(void) {
  int per = N / devices;
  fill(ncclInt32, N);
  EACH OK(ncclAllGather(in[d], out[d], per, ncclInt32, comm[d], st[d]));
  OK(ncclGroupEnd());
  int32_t *p = result(1, 4u * per * devices);
  for (int i = 0; i < per * devices; i++) TRUE(p[i] == value(i / per, i % per));
  EACH OK(ncclReduceScatter(in[d], out[d], per, ncclInt32, ncclSum, comm[d], st[d]));
  OK(ncclGroupEnd());
  p = result(1, 4u * per);
  for (int i = 0; i < per; i++) TRUE(p[i] == reduced(ncclSum, ncclInt32, per + i));
  EACH OK(ncclAlltoAll(in[d], out[d], per, ncclInt32, comm[d], st[d]));
  OK(ncclGroupEnd());
  p = result(1, 4u * per * devices);
  for (int i = 0; i < per * devices; i++) TRUE(p[i] == value(i / per, per + i % per));
  // The same by sends and receives, all of a group.
  EACH for (int r = 0; r < devices; r++) {
    OK(ncclSend((int32_t *)in[d] + r * per, per, ncclInt32, r, comm[d], st[d]));
    OK(ncclRecv((int32_t *)out[d] + r * per, per, ncclInt32, r, comm[d], st[d]));
  }
  OK(ncclGroupEnd());
  p = result(devices - 1, 4u * per * devices);
  for (int i = 0; i < per * devices; i++) TRUE(p[i] == value(i / per, (devices - 1) * per + i % per));
  // In place: the sum of all in the buffer of each.
  EACH OK(ncclAllReduce(in[d], in[d], N, ncclInt32, ncclSum, comm[d], st[d]));
  OK(ncclGroupEnd());
  OK(cudaMemcpyAsync(out[2], in[2], N * 4, 3, st[2]));
  p = result(2, N * 4);
  for (int i = 0; i < N; i++) TRUE(p[i] == reduced(ncclSum, ncclInt32, i));
}

// Each rank scales what it gives; the operators are destroyed before the group ends.
static void scaled(void) {
  fill(ncclFloat32, N);
  EACH {
    int op;
    float by = (float)(d + 1);
    OK(ncclRedOpCreatePreMulSum(&op, &by, ncclFloat32, 1, comm[d]));
    TRUE(op >= 5);
    OK(ncclAllReduce(in[d], out[d], N, ncclFloat32, op, comm[d], st[d]));
    IS(ncclInvalidArgument, ncclAllReduce(in[d], out[d], N, ncclFloat64, op, comm[d], st[d]) == 4 ? 4 : 0);
    OK(ncclRedOpDestroy(op, comm[d]));
    IS(ncclInvalidArgument, ncclRedOpDestroy(op, comm[d]));
  }
  IS(ncclInvalidArgument, ncclGroupEnd()); // the wrong type: no call of the group is carried out
  EACH {
    int op;
    float by = (float)(d + 1);
    OK(ncclRedOpCreatePreMulSum(&op, &by, ncclFloat32, 1, comm[d]));
    OK(ncclAllReduce(in[d], out[d], N, ncclFloat32, op, comm[d], st[d]));
    OK(ncclRedOpDestroy(op, comm[d]));
  }
  OK(ncclGroupEnd());
  float *f = result(3, N * 4);
  for (int i = 0; i < N; i++) {
    double want = 0;
    for (int d = 0; d < devices; d++) want += value(d, i) * (d + 1);
    TRUE(f[i] == (float)want);
  }
}

int main(void) {
  OK(cudaGetDeviceCount(&devices));
  TRUE(devices >= 4 && devices <= MAXDEV);
  OK(ncclCommInitAll(comm, devices, NULL));
  for (int d = 0; d < devices; d++) {
    int n, r, dev;
    OK(cudaSetDevice(d));
    OK(ncclCommCount(comm[d], &n));
    OK(ncclCommUserRank(comm[d], &r));
    OK(ncclCommCuDevice(comm[d], &dev));
    TRUE(n == devices && r == d && dev == d);
    OK(cudaStreamCreate(&st[d]));
    OK(cudaMalloc(&in[d], 8 * N * (size_t)devices));
    OK(cudaMalloc(&out[d], 8 * N * (size_t)devices));
  }
  reductions();
  rooted();
  spread();
  scaled();
  for (int d = 0; d < devices; d++) OK(ncclCommDestroy(comm[d]));
  puts("right");
  return 0;
}
