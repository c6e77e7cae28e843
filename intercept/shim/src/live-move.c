// A process that moves the data of collectives and messages on real GPUs. It maps the
// buffers of all ranks (CUDA IPC), and copies or reduces when the collector asks for it,
// while the streams of the ranks wait. It is a process of its own since CUDA's calls may
// wait for all streams of their context, and those of a rank wait for the move.
#define _GNU_SOURCE
#include "live.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <dlfcn.h>

static struct {
#define X(name, args) error(*name) args;
  MOVER(X)
#undef X
  error (*cuIpcOpenMemHandle)(uint64_t *, struct ipc, unsigned);
} D;

// --- buffers of other processes ---

struct mapping { struct shared of; uint64_t at; struct mapping *next; };
static struct mapping *mappings[1024];

static error place_of(const struct shared *b, uint64_t *at) {
  struct mapping **slot = &mappings[(b->base >> 21 ^ b->base >> 9 ^ b->pid) & 1023], *m = *slot;
  while (m && (m->of.pid != b->pid || m->of.base != b->base)) m = m->next;
  if (m && memcmp(m->of.handle, b->handle, sizeof b->handle)) { // other memory at the same place
    D.cuIpcCloseMemHandle(m->at);
    m->at = 0;
  }
  if (!m) {
    if (!(m = calloc(1, sizeof *m))) return 2;
    m->next = *slot;
    *slot = m;
  }
  m->of = *b;
  if (!m->at) {
    struct ipc h;
    memcpy(&h, b->handle, sizeof h);
    error e = D.cuIpcOpenMemHandle(&m->at, h, 1);
    if (e) return m->at = 0, e;
  }
  *at = m->at + b->offset;
  return 0;
}

// --- reductions, as text that the driver compiles ---

struct form { const char *name, *load, *store, *reg, *wide; int size, real, sign; };
// How a value is read, kept and computed with: 16-bit floats in 32 bits, integers in 64.
static const struct form forms[10] = {
    {"i8", "s8", "u8", "rd", "s64", 1, 0, 1},   {"u8", "u8", "u8", "rd", "u64", 1, 0, 0},
    {"i32", "s32", "u32", "rd", "s64", 4, 0, 1}, {"u32", "u32", "u32", "rd", "u64", 4, 0, 0},
    {"i64", "s64", "u64", "rd", "s64", 8, 0, 1}, {"u64", "u64", "u64", "rd", "u64", 8, 0, 0},
    {"f16", "b16", "b16", "f", "f32", 2, 1, 1},  {"f32", "f32", "f32", "f", "f32", 4, 1, 1},
    {"f64", "f64", "f64", "fd", "f64", 8, 1, 1}, {"bf16", "b16", "b16", "f", "f32", 2, 1, 1}};

static void put(char **at, const char *format, ...) __attribute__((format(printf, 2, 3)));
#include <stdarg.h>
static void put(char **at, const char *format, ...) {
  va_list args;
  va_start(args, format);
  *at += vsprintf(*at, format, args);
  va_end(args);
}

// put_load loads the value at address rd9 into a register; 16-bit floats are widened to 32 bits.
static void put_load(char **p, int type, int reg) {
  const struct form *t = &forms[type];
  if (type == 6) put(p, "ld.global.b16 h1,[rd9]; cvt.f32.f16 f%d,h1;\n", reg);
  else if (type == 9) put(p, "ld.global.b16 h1,[rd9]; mov.b16 h2,0; mov.b32 r9,{h2,h1}; mov.b32 f%d,r9;\n", reg);
  else put(p, "ld.global.%s %s%d,[rd9];\n", t->load, t->reg, reg);
}

// put_round rounds a register to its type, as a store and a load would.
static void put_round(char **p, int type, int reg) {
  if (type == 6) put(p, "cvt.rn.f16.f32 h1,f%d; cvt.f32.f16 f%d,h1;\n", reg, reg);
  if (type == 9) put(p, "cvt.rn.bf16.f32 h1,f%d; mov.b16 h2,0; mov.b32 r9,{h2,h1}; mov.b32 f%d,r9;\n", reg, reg);
  if (type == 0) put(p, "cvt.s64.s8 rd%d,rd%d;\n", reg, reg);
  if (type == 1) put(p, "and.b64 rd%d,rd%d,255;\n", reg, reg);
  if (type == 2) put(p, "cvt.s64.s32 rd%d,rd%d;\n", reg, reg);
  if (type == 3) put(p, "cvt.u64.u32 rd%d,rd%d;\n", reg, reg);
}

static void put_op(char **p, int type, int op) {
  const struct form *t = &forms[type];
  const char *nan = t->real && type != 8 ? ".NaN" : "";
  switch (op) {
  case OP_PROD: put(p, t->real ? "mul.rn.%s %s1,%s1,%s2;\n" : "mul.lo.%s %s1,%s1,%s2;\n", t->wide, t->reg, t->reg, t->reg); break;
  case OP_MAX: put(p, "max%s.%s %s1,%s1,%s2;\n", nan, t->wide, t->reg, t->reg, t->reg); break;
  case OP_MIN: put(p, "min%s.%s %s1,%s1,%s2;\n", nan, t->wide, t->reg, t->reg, t->reg); break;
  default: put(p, t->real ? "add.rn.%s %s1,%s1,%s2;\n" : "add.%s %s1,%s1,%s2;\n", t->wide, t->reg, t->reg, t->reg);
  }
  put_round(p, type, 1);
}

// put_scale multiplies a register by the scalar of source r1; scalars are behind the
// addresses, as values of the type.
static void put_scale(char **p, int type, int reg) {
  const struct form *t = &forms[type];
  put(p, "add.u32 r7,r2,r3; add.u32 r7,r7,r1; mul.wide.u32 rd9,r7,8; add.u64 rd9,rd9,rd4;\n");
  if (t->real && t->size == 2) put_load(p, type, 3);
  else put(p, "ld.global.%s %s3,[rd9];\n", t->load, t->reg);
  put(p, t->real ? "mul.rn.%s %s%d,%s%d,%s3;\n" : "mul.lo.%s %s%d,%s%d,%s3;\n", t->wide, t->reg, reg, t->reg, reg, t->reg);
  put_round(p, type, reg);
}

// text writes the kernel of a type and a reduction: table holds n + m addresses; each
// thread takes elements a grid apart, and reads all n before it writes any.
static void text(char *p, int type, int op) {
  const struct form *t = &forms[type];
  put(&p, ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry reduce_%s_%d(.param .u64 table,.param .u32 n,.param .u32 m,.param .u64 count)\n{\n", t->name, op);
  put(&p, ".reg .pred p<4>; .reg .b16 h<4>; .reg .b32 r<12>; .reg .b64 rd<16>; .reg .f32 f<4>; .reg .f64 fd<4>;\n");
  put(&p, "ld.param.u64 rd4,[table]; cvta.to.global.u64 rd4,rd4; ld.param.u32 r2,[n]; ld.param.u32 r3,[m]; ld.param.u64 rd5,[count];\n");
  put(&p, "mov.u32 r4,%%ctaid.x; mov.u32 r5,%%ntid.x; mov.u32 r6,%%tid.x; mul.wide.u32 rd6,r4,r5; cvt.u64.u32 rd7,r6; add.u64 rd6,rd6,rd7;\n");
  put(&p, "mov.u32 r4,%%nctaid.x; mul.wide.u32 rd7,r4,r5;\nELEMENT: setp.ge.u64 p1,rd6,rd5; @p1 bra DONE;\nmul.lo.u64 rd8,rd6,%d;\n", t->size);
  put(&p, "ld.global.u64 rd9,[rd4]; add.u64 rd9,rd9,rd8;\n");
  put_load(&p, type, 1);
  put(&p, "mov.u32 r1,0;\n");
  if (op == OP_SCALED) put_scale(&p, type, 1);
  put(&p, "SOURCE: add.u32 r1,r1,1; setp.ge.u32 p2,r1,r2; @p2 bra STORE; mul.wide.u32 rd10,r1,8; add.u64 rd10,rd10,rd4; ld.global.u64 rd9,[rd10]; add.u64 rd9,rd9,rd8;\n");
  put_load(&p, type, 2);
  if (op == OP_SCALED) put_scale(&p, type, 2);
  put_op(&p, type, op);
  put(&p, "bra SOURCE;\nSTORE:\n");
  if (op == OP_AVG) {
    put(&p, "cvt.%s%s.u32 %s2,r2;\n", t->real ? "rn." : "", t->real ? t->wide : "u64", t->reg);
    put(&p, "div%s.%s %s1,%s1,%s2;\n", t->real ? ".rn" : "", t->wide, t->reg, t->reg, t->reg);
  }
  put(&p, "mov.u32 r1,0;\n");
  if (type == 6) put(&p, "cvt.rn.f16.f32 h1,f1;\n");
  if (type == 9) put(&p, "cvt.rn.bf16.f32 h1,f1;\n");
  put(&p, "PLACE: setp.ge.u32 p2,r1,r3; @p2 bra NEXT; add.u32 r7,r1,r2; mul.wide.u32 rd10,r7,8; add.u64 rd10,rd10,rd4; ld.global.u64 rd9,[rd10]; add.u64 rd9,rd9,rd8;\n");
  put(&p, "st.global.%s [rd9],%s1; add.u32 r1,r1,1; bra PLACE;\n", t->store, t->size == 2 ? "h" : t->reg);
  put(&p, "NEXT: add.u64 rd6,rd6,rd7; bra ELEMENT;\nDONE: ret;\n}\n");
}

static handle kernels[10][6];

static error kernel(int type, int op, handle *out) {
  if (!kernels[type][op]) {
    char name[32], *source = malloc(16384);
    handle module;
    if (!source) return 2;
    text(source, type, op);
    error e = D.cuModuleLoadData(&module, source);
    free(source);
    snprintf(name, sizeof name, "reduce_%s_%d", forms[type].name, op);
    if (!e) e = D.cuModuleGetFunction(&kernels[type][op], module, name);
    if (e) return e;
  }
  *out = kernels[type][op];
  return 0;
}

// --- a job ---

static handle stream;
static uint64_t tables; // of addresses on the device
enum { TABLE = 1 << 20 };

static error reduce(const struct step *s, const uint64_t *words, size_t *used) {
  size_t n = (size_t)(s->n + s->m) + (s->op == OP_SCALED ? (size_t)s->n : 0), blocks = (s->count + 255) / 256;
  handle f;
  if (s->type < 0 || s->type >= 10 || s->op < 0 || s->op > OP_SCALED) return 801;
  error e = kernel(s->type, s->op, &f);
  if (e) return e;
  if (*used + 8 * n > TABLE) {
    if ((e = D.cuStreamSynchronize(stream))) return e;
    *used = 0;
  }
  if (8 * n > TABLE) return 801;
  uint64_t at = tables + *used;
  *used += 8 * n;
  if ((e = D.cuMemcpyHtoDAsync_v2(at, words, 8 * n, stream))) return e;
  if (blocks > 2048) blocks = 2048;
  uint32_t sources = (uint32_t)s->n, places = (uint32_t)s->m;
  uint64_t count = s->count;
  void *args[] = {&at, &sources, &places, &count};
  return D.cuLaunchKernel(f, (unsigned)blocks, 1, 1, 256, 1, 1, 0, stream, args, NULL);
}

// carry_out runs a job (collector/steps.go): the number of buffers (8 bytes), their struct shared, then steps.
static int carry_out(const char *job, size_t size, char *why, size_t room) {
  const char *end = job + size;
  uint64_t count, *at = NULL, *words = NULL;
  size_t used = 0;
  error e = 0;
  const char *doing = "";
  if (!stream && ((e = D.cuStreamCreate(&stream, 1)) || (e = D.cuMemAlloc_v2(&tables, TABLE)))) goto out;
  memcpy(&count, job, 8);
  job += 8;
  if (!(at = calloc(count + 1, 8))) return snprintf(why, room, "out of memory"), 2;
  doing = "cuIpcOpenMemHandle";
  for (uint64_t i = 0; i < count && !e; i++, job += sizeof(struct shared)) e = place_of((const struct shared *)job, &at[i]);
  while (job < end && !e) {
    struct step s;
    memcpy(&s, job, sizeof s);
    job += sizeof s;
    size_t n = (size_t)(s.n + s.m), scalars = s.op == OP_SCALED ? (size_t)s.n : 0;
    if (!(words = realloc(words, 8 * (n + scalars + 1)))) return snprintf(why, room, "out of memory"), 2;
    for (size_t i = 0; i < n; i++, job += sizeof(struct place)) {
      struct place p;
      memcpy(&p, job, sizeof p);
      words[i] = at[p.buffer] + p.offset;
    }
    memcpy(words + n, job, 8 * scalars);
    job += 8 * scalars;
    doing = s.kind == STEP_COPY ? "a copy" : "a reduction";
    if (s.kind == STEP_COPY) e = words[0] == words[1] ? 0 : D.cuMemcpyAsync(words[1], words[0], s.count, stream);
    else e = reduce(&s, words, &used);
  }
  if (!e) e = D.cuStreamSynchronize(stream);
out:
  free(at);
  free(words);
  if (e) snprintf(why, room, "moving data on the GPU: %s: error %d of CUDA's", doing, e);
  return e;
}

static const char *begin(void) {
  void *lib = dlopen("libcuda.so.1", RTLD_NOW);
  handle context;
  if (!lib) return "libcuda.so.1";
#define X(name, args) \
  if (!(D.name = (error(*) args)dlsym(lib, #name))) return #name;
  MOVER(X)
#undef X
  if (!(D.cuIpcOpenMemHandle = (error(*)(uint64_t *, struct ipc, unsigned))dlsym(lib, "cuIpcOpenMemHandle_v2"))) return "cuIpcOpenMemHandle_v2";
  return D.cuInit(0) || D.cuDevicePrimaryCtxRetain(&context, 0) || D.cuCtxSetCurrent(context) ? "a GPU" : NULL;
}

int main(void) {
  enum { ROOM = 16 << 20 };
  char *job = malloc(ROOM), why[256];
  const char *missing = job ? begin() : "memory";
  if (missing) {
    fprintf(stderr, "simccl: data cannot be moved on GPUs: %s is not there\n", missing);
    return 1;
  }
  for (;;) {
    struct request r = {.type = REQ_ATTEND, .a = {0, 1}};
    struct reply out;
    if (simccl_call(&r, NULL, &out, job, ROOM) || out.status) return 0;
    if (out.a[0] != ACTION_MOVE) continue;
    why[0] = 0;
    int e;
    if (out.size < ROOM) {
      e = carry_out(job, out.size, why, sizeof why);
    } else { // it was passed over, as there is no room for it
      snprintf(why, sizeof why, "the pieces of a move take %u bytes, more than %d; take fewer ranks or smaller groups", out.size, ROOM - 1);
      e = 1; // cudaErrorInvalidValue
    }
    struct request done = {.type = REQ_MOVED, .size = (uint32_t)strlen(why), .a = {out.a[1], e}};
    simccl_call(&done, why, &out, NULL, 0);
  }
}
