/* simccl's profiler plugin for NCCL: writes what NCCL tells a profiler as a
 * Chrome trace with simccl's tracks and names (trace/nccl), so that real
 * and simulated runs can be compared. Any program can use it:
 *
 *   NCCL_PROFILER_PLUGIN=/path/libnccl-profiler-simccl.so SIMCCL_PROFILE_FILE=run python train.py
 *
 * writes run.<pid>.json when the last communicator of the process ends, or the
 * process itself: training scripts seldom destroy their process group.
 * SIMCCL_PROFILE_MASK or NCCL_PROFILE_EVENT_MASK choose the kinds of events.
 *
 * The structures below are NCCL 2.28.9's profiler interface, version 5
 * (src/include/plugin/profiler/profiler_v5.h), declared by their layout. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

enum { GROUP = 1, COLL = 2, P2P = 4, PROXY_OP = 8, PROXY_STEP = 16, PROXY_CTRL = 32, KERNEL_CH = 64, NET = 128,
       GROUP_API = 256, COLL_API = 512, P2P_API = 1024, LAUNCH = 2048, ALL = 4095 };
enum { STATE_SEND_GPU = 8, STATE_SEND_WAIT = 9, STATE_RECV_WAIT = 10, STATE_RECV_FLUSH = 11, STATE_RECV_GPU = 12,
       STATE_SEND_PEER = 20, STATE_KERNEL_STOP = 22 };

struct descr {
  uint64_t type;
  void *parent;
  int rank;
  union {
    struct { bool captured; int depth; } group_api;
    struct { const char *func; size_t count; const char *datatype; int root; void *stream; bool captured; } coll_api;
    struct { const char *func; size_t count; const char *datatype; void *stream; bool captured; } p2p_api;
    struct { void *stream; } launch;
    struct { uint64_t seq; const char *func; const void *send; void *recv; size_t count; int root; const char *datatype;
             uint8_t channels, warps; const char *algo, *proto; void *group; } coll;
    struct { const char *func; void *buff; const char *datatype; size_t count; int peer; uint8_t channels; void *group; } p2p;
    struct { pid_t pid; uint8_t channel; int peer, steps, chunk, send; } proxy_op;
    struct { int step; } proxy_step;
    struct { uint8_t channel; uint64_t timer; } kernel;
    struct { int64_t id; void *data; } net;
  };
};
/* Offsets of the interface on 64-bit machines. */
_Static_assert(sizeof(struct descr) == 112 && __builtin_offsetof(struct descr, coll.algo) == 88 &&
               __builtin_offsetof(struct descr, proxy_op.send) == 44 && __builtin_offsetof(struct descr, kernel.timer) == 32, "descr");
union state_args {
  struct { size_t bytes; } step;
  struct { uint64_t timer; } kernel;
};
struct interface {
  const char *name;
  int (*init)(void **, uint64_t, int *, const char *, int, int, int, void (*)(int, unsigned long, const char *, int, const char *, ...));
  int (*start)(void *, void **, struct descr *);
  int (*stop)(void *);
  int (*state)(void *, int, union state_args *);
  int (*finalize)(void *);
};

/* A communicator, and an event of one. Times are nanoseconds: host is
 * CLOCK_MONOTONIC, gpu the GPU's own. */
struct comm { uint64_t hash; int rank, ranks, index; };
struct event {
  struct comm *comm;
  struct event *parent;
  uint32_t type;
  int64_t from, to;         /* host */
  int64_t gpu_from, gpu_to; /* of a kernel's channel */
  char name[24], datatype[20], algo[16], proto[12];
  uint64_t count, seq, bytes;
  int a, b, c;              /* channel/root/depth, peer/channels, steps/step */
  bool flag;                /* captured, or a send */
  int states;
  struct { int what; int64_t at; } state[6];
};

/* Events live in blocks that never move, since NCCL holds pointers to them. */
enum { BLOCK = 4096, BLOCKS = 4096, COMMS = 256 };
static struct event *blocks[BLOCKS];
static uint64_t used, dropped;
static struct comm comms[COMMS];
static int ncomms, alive;
static int *mask_of_nccl;
static int wanted = ALL;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static struct event *at(uint64_t i) { return &blocks[i / BLOCK][i % BLOCK]; }

static struct event *new_event(void) {
  struct event *e = NULL;
  pthread_mutex_lock(&lock);
  if (used < (uint64_t)BLOCK * BLOCKS) {
    struct event **b = &blocks[used / BLOCK];
    if (*b || (*b = calloc(BLOCK, sizeof(**b)))) e = at(used++);
  }
  if (!e) dropped++;
  pthread_mutex_unlock(&lock);
  return e;
}

static void set(char *to, size_t size, const char *from) {
  if (from) snprintf(to, size, "%s", from);
}
#define SET(field, from) set((field), sizeof(field), (from))

static int init(void **context, uint64_t hash, int *mask, const char *name, int nodes, int ranks, int rank,
                void (*log)(int, unsigned long, const char *, int, const char *, ...)) {
  (void)name; (void)nodes; (void)log;
  pthread_mutex_lock(&lock);
  if (!mask_of_nccl) {
    const char *text = getenv("SIMCCL_PROFILE_MASK");
    if (!text) text = getenv("NCCL_PROFILE_EVENT_MASK");
    if (text) wanted = (int)strtol(text, NULL, 0);
  }
  mask_of_nccl = mask;
  struct comm *c = &comms[ncomms < COMMS ? ncomms : COMMS - 1];
  *c = (struct comm){hash, rank, ranks, 0};
  for (int i = 0; i < ncomms && i < COMMS; i++) /* communicators of one rank get tracks of their own */
    if (&comms[i] != c && comms[i].rank == rank) c->index++;
  if (ncomms < COMMS) ncomms++;
  alive++;
  *context = c;
  __atomic_store_n(mask, wanted, __ATOMIC_RELAXED);
  pthread_mutex_unlock(&lock);
  return 0;
}

static int start(void *context, void **handle, struct descr *d) {
  int64_t t = now();
  *handle = NULL;
  if (d->type & (PROXY_CTRL | NET)) return 0;
  struct event *e = new_event();
  if (!e) return 0;
  e->comm = context;
  e->type = (uint32_t)d->type;
  e->from = e->to = t;
  if (d->type != PROXY_OP || d->proxy_op.pid == getpid()) e->parent = d->parent;
  switch (d->type) {
  case GROUP_API: e->a = d->group_api.depth; e->flag = d->group_api.captured; break;
  case COLL_API: SET(e->name, d->coll_api.func); SET(e->datatype, d->coll_api.datatype);
    e->count = d->coll_api.count; e->a = d->coll_api.root; e->flag = d->coll_api.captured; break;
  case P2P_API: SET(e->name, d->p2p_api.func); SET(e->datatype, d->p2p_api.datatype);
    e->count = d->p2p_api.count; e->flag = d->p2p_api.captured; break;
  case COLL: SET(e->name, d->coll.func); SET(e->datatype, d->coll.datatype); SET(e->algo, d->coll.algo); SET(e->proto, d->coll.proto);
    e->count = d->coll.count; e->seq = d->coll.seq; e->a = d->coll.root; e->b = d->coll.channels; break;
  case P2P: SET(e->name, d->p2p.func); SET(e->datatype, d->p2p.datatype);
    e->count = d->p2p.count; e->a = d->p2p.peer; e->b = d->p2p.channels; break;
  case PROXY_OP: e->a = d->proxy_op.channel; e->b = d->proxy_op.peer; e->c = d->proxy_op.steps;
    e->bytes = (uint64_t)d->proxy_op.chunk; e->flag = d->proxy_op.send != 0; break;
  case PROXY_STEP: e->c = d->proxy_step.step; break;
  case KERNEL_CH: e->a = d->kernel.channel; e->gpu_from = e->gpu_to = (int64_t)d->kernel.timer; break;
  }
  *handle = e;
  return 0;
}

static int stop(void *handle) {
  struct event *e = handle;
  if (!e) return 0;
  int64_t t = now();
  for (struct event *p = e; p; p = p->parent) /* an operation lasts until its parts have ended */
    if (p == e || (p->type & (COLL | P2P | GROUP))) {
      if (p->to < t) p->to = t;
    }
  return 0;
}

static int state(void *handle, int what, union state_args *args) {
  struct event *e = handle;
  if (!e) return 0;
  if (what == STATE_KERNEL_STOP && args) e->gpu_to = (int64_t)args->kernel.timer;
  if (e->type == PROXY_STEP && e->states < 6) {
    e->state[e->states].what = what;
    e->state[e->states++].at = now();
    if (args && (what == STATE_SEND_WAIT || what == STATE_RECV_GPU || what == STATE_RECV_FLUSH)) e->bytes = args->step.bytes;
  }
  return 0;
}

/* The GPU's clock starts elsewhere. A kernel starts after its launch and before
 * NCCL sees it started: that bounds the difference from both sides. */
static void gpu_offset(struct comm *c, int64_t *offset, int64_t *doubt) {
  int64_t lo = INT64_MIN, hi = INT64_MAX;
  for (uint64_t i = 0; i < used; i++) {
    struct event *k = at(i);
    if (k->type != KERNEL_CH || k->comm->rank != c->rank || !k->gpu_from) continue;
    if (k->from - k->gpu_from < hi) hi = k->from - k->gpu_from;
    if (k->parent && k->parent->from - k->gpu_from > lo) lo = k->parent->from - k->gpu_from;
  }
  if (lo == INT64_MIN) lo = hi;
  if (hi == INT64_MAX) lo = hi = 0;
  if (lo > hi) lo = hi;
  *offset = lo + (hi - lo) / 2;
  *doubt = (hi - lo) / 2;
}

struct line { int64_t from, to; long pid; int tid; char text[560]; };
static struct line *lines;
static size_t nlines, caplines;

static struct line *add(int64_t from, int64_t to, int rank, int tid) {
  if (nlines == caplines) {
    size_t cap = caplines ? 2 * caplines : 1024;
    struct line *l = realloc(lines, cap * sizeof(*l));
    if (!l) return NULL;
    lines = l;
    caplines = cap;
  }
  struct line *l = &lines[nlines++];
  *l = (struct line){.from = from, .to = to < from ? from : to, .pid = 1000000 + rank, .tid = tid};
  return l;
}

static int by_time(const void *x, const void *y) {
  const struct line *a = x, *b = y;
  if (a->from != b->from) return a->from < b->from ? -1 : 1;
  return a->to > b->to ? -1 : a->to < b->to;
}
static int by_track(const void *x, const void *y) {
  const struct line *a = x, *b = y;
  if (a->pid != b->pid) return a->pid < b->pid ? -1 : 1;
  return a->tid - b->tid;
}

static const char *upper(char *s) {
  for (char *p = s; *p; p++)
    if (*p >= 'a' && *p <= 'z') *p -= 32;
  return s;
}

static const char *wait_name(int what) {
  switch (what) {
  case STATE_SEND_GPU: return "SendGpuWait";
  case STATE_SEND_PEER: return "SendPeerWait";
  case STATE_SEND_WAIT: return "SendWait";
  case STATE_RECV_WAIT: return "RecvWait";
  case STATE_RECV_FLUSH: return "RecvFlushWait";
  case STATE_RECV_GPU: return "RecvGpuWait";
  }
  return NULL;
}

static void print_step(struct event *e) {
  struct event *op = e->parent;
  if (!op || op->type != PROXY_OP) return;
  int tid = 10000 + 128 * op->a + (op->flag ? 0 : 64) + e->c % 8;
  for (int i = 0; i < e->states; i++) {
    int64_t to = i + 1 < e->states ? e->state[i + 1].at : e->to;
    const char *name = wait_name(e->state[i].what);
    struct line *l = name ? add(e->state[i].at, to, e->comm->rank, tid) : NULL;
    if (l) snprintf(l->text, sizeof l->text, "\"cat\":\"NET\",\"name\":\"%s\",\"args\":{\"Step\":%d,\"Peer\":%d,\"bytes\":%llu,\"slot\":%d,\"transport\":\"NET\",\"gdr\":0}",
                    name, e->c, op->b, (unsigned long long)e->bytes, e->c % 8);
  }
}

static void print_event(struct event *e, const int64_t *offset) {
  int rank = e->comm->rank;
  struct line *l;
  switch (e->type) {
  case GROUP_API:
    if ((l = add(e->from, e->to, rank, 1)))
      snprintf(l->text, sizeof l->text, "\"cat\":\"GROUP_API\",\"name\":\"Group API\",\"args\":{\"groupApiId\":0,\"groupDepth\":%d}", e->a);
    break;
  case COLL_API:
    if ((l = add(e->from, e->to, rank, 1)))
      snprintf(l->text, sizeof l->text, "\"cat\":\"COLL_API\",\"name\":\"%s\",\"args\":{\"count\":%llu,\"datatype\":\"%s\",\"root\":%d,\"GraphCaptured\":%d,\"Stream\":\"\"}",
               e->name, (unsigned long long)e->count, e->datatype, e->a, e->flag);
    break;
  case P2P_API:
    if ((l = add(e->from, e->to, rank, 1)))
      snprintf(l->text, sizeof l->text, "\"cat\":\"P2P_API\",\"name\":\"%s\",\"args\":{\"count\":%llu,\"datatype\":\"%s\",\"GraphCaptured\":%d,\"Stream\":\"\"}",
               e->name, (unsigned long long)e->count, e->datatype, e->flag);
    break;
  case LAUNCH:
    if ((l = add(e->from, e->to, rank, 1)))
      snprintf(l->text, sizeof l->text, "\"cat\":\"KERNEL_LAUNCH\",\"name\":\"KernelLaunch\",\"args\":{\"Stream\":\"\"}");
    break;
  case COLL:
    if ((l = add(e->from, e->to, rank, 200)))
      snprintf(l->text, sizeof l->text, "\"cat\":\"COLL\",\"name\":\"%s\",\"args\":{\"SeqNum\":%llu,\"CommHash\":\"0x%llx\",\"Rank\":%d,\"Count\":%llu,\"Datatype\":\"%s\",\"Algorithm\":\"%s\",\"Protocol\":\"%s\",\"nChannels\":%d}",
               e->name, (unsigned long long)e->seq, (unsigned long long)e->comm->hash, rank, (unsigned long long)e->count, e->datatype, upper(e->algo), upper(e->proto), e->b);
    break;
  case P2P:
    if ((l = add(e->from, e->to, rank, 300)))
      snprintf(l->text, sizeof l->text, "\"cat\":\"P2P\",\"name\":\"%s\",\"args\":{\"CommHash\":\"0x%llx\",\"Rank\":%d,\"Peer\":%d,\"Count\":%llu,\"Datatype\":\"%s\",\"nChannels\":%d}",
               e->name, (unsigned long long)e->comm->hash, rank, e->a, (unsigned long long)e->count, e->datatype, e->b);
    break;
  case PROXY_OP:
    if ((l = add(e->from, e->to, rank, 10000 + 128 * e->a + (e->flag ? 0 : 64) + 48)))
      snprintf(l->text, sizeof l->text, "\"cat\":\"PROXY\",\"name\":\"%s\",\"args\":{\"Channel\":%d,\"Peer\":%d,\"Steps\":%d,\"ChunkSize\":%llu,\"transSize\":0}",
               e->flag ? "ProgressSend" : "ProgressRecv", e->a, e->b, e->c, (unsigned long long)e->bytes);
    break;
  case PROXY_STEP: print_step(e); break;
  case KERNEL_CH:
    if ((l = add(e->gpu_from + *offset, e->gpu_to + *offset, rank, 400 + 64 * e->comm->index + e->a)))
      snprintf(l->text, sizeof l->text, "\"cat\":\"GPU\",\"name\":\"KernelCh\",\"args\":{\"Channel\":%d,\"StartGpuClk\":\"%lld\",\"StopGpuClk\":\"%lld\"}",
               e->a, (long long)e->gpu_from, (long long)e->gpu_to);
    break;
  }
}

/* part lays slices that overlap on lanes of their own: of a group of tracks
 * that begins at tid, at most `most`. Lines are in order of time. */
static void part(int tid, int most) {
  for (size_t i = 0; i < nlines; i++) {
    if (lines[i].tid != tid) continue;
    for (int lane = 0; lane < most; lane++) {
      bool free_lane = true;
      for (size_t j = i; j-- > 0 && free_lane;)
        if (lines[j].pid == lines[i].pid && lines[j].tid == tid + lane && lines[j].to > lines[i].from) free_lane = false;
      if (free_lane || lane == most - 1) {
        lines[i].tid = tid + lane;
        break;
      }
    }
  }
}

static void track_name(char *out, size_t size, int tid) {
  if (tid == 1) snprintf(out, size, "API");
  else if (tid < 300) snprintf(out, size, "collectives %d", tid - 200);
  else if (tid < 400) snprintf(out, size, "P2P %d", tid - 300);
  else if (tid < 9000) snprintf(out, size, "comm %d kernel ch %02d", (tid - 400) / 64, (tid - 400) % 64);
  else {
    int ch = (tid - 10000) / 128, at = (tid - 10000) % 128;
    const char *dir = at < 64 ? "send" : "recv";
    at %= 64;
    if (at < 48) snprintf(out, size, "ch %02d %s · step %d", ch, dir, at);
    else snprintf(out, size, "ch %02d %s · op %d", ch, dir, at - 48);
  }
}

static void print_names(FILE *f, bool *first) {
  struct line *order = malloc((nlines ? nlines : 1) * sizeof(*order));
  if (!order) return;
  memcpy(order, lines, nlines * sizeof(*order));
  qsort(order, nlines, sizeof(*order), by_track);
  for (size_t i = 0; i < nlines; i++) {
    const struct line *l = &order[i];
    if (!i || order[i - 1].pid != l->pid) {
      fprintf(f, "%s{\"ph\":\"M\",\"pid\":%ld,\"name\":\"process_name\",\"args\":{\"name\":\"rank %ld\"}}", *first ? "" : ",\n", l->pid, l->pid - 1000000);
      fprintf(f, ",\n{\"ph\":\"M\",\"pid\":%ld,\"name\":\"process_sort_index\",\"args\":{\"sort_index\":%ld}}", l->pid, l->pid - 1000000);
      *first = false;
    } else if (order[i - 1].tid == l->tid) continue;
    char name[64];
    track_name(name, sizeof name, l->tid);
    fprintf(f, ",\n{\"ph\":\"M\",\"pid\":%ld,\"tid\":%d,\"name\":\"thread_name\",\"args\":{\"name\":\"%s\"}}", l->pid, l->tid, name);
    fprintf(f, ",\n{\"ph\":\"M\",\"pid\":%ld,\"tid\":%d,\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":%d}}", l->pid, l->tid, l->tid);
  }
  free(order);
}

/* How far the calendar's clock is ahead of the host's. It ties the files of a
 * run's processes together: exactly on one host, as well as the hosts' clocks
 * agree between several. */
static int64_t calendar(void) {
  struct timespec t;
  int64_t before = now();
  clock_gettime(CLOCK_REALTIME, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec - (before + (now() - before) / 2);
}

/* Where other processes have ranks of the first communicator, the file says
 * that it is a part of the run's trace. */
static void print_part(FILE *f) {
  int here = 0;
  for (int c = 0; c < ncomms; c++) here += comms[c].hash == comms[0].hash;
  if (here && here < comms[0].ranks) fprintf(f, ",\"part\":{\"rank\":%d,\"of\":%d}", comms[0].rank, comms[0].ranks);
}

/* unfinished is where a file is written until it is whole: beside its place,
 * or in it if that is no regular file, which nothing may replace. */
static void unfinished(char *out, size_t size, const char *path) {
  struct stat at;
  bool device = !stat(path, &at) && !S_ISREG(at.st_mode);
  snprintf(out, size, device ? "%s" : "%s.part", path);
}

/* simccl_profiler_write writes all events so far and forgets them; 0: done. The
 * file appears whole or not at all: programs are killed at their end. */
int simccl_profiler_write(const char *path) {
  char tmp[4200];
  unfinished(tmp, sizeof tmp, path);
  FILE *f = fopen(tmp, "w");
  if (!f) return 1;
  pthread_mutex_lock(&lock);
  int64_t offset[COMMS], doubt[COMMS];
  for (int c = 0; c < ncomms; c++) gpu_offset(&comms[c], &offset[c], &doubt[c]);
  nlines = 0;
  for (uint64_t i = 0; i < used; i++) print_event(at(i), &offset[at(i)->comm - comms]);
  qsort(lines, nlines, sizeof(*lines), by_time);
  part(200, 100);
  part(300, 100);
  int64_t epoch = nlines ? lines[0].from : 0;
  fprintf(f, "{\"displayTimeUnit\":\"ns\",\n\"otherData\":{\"schema\":\"simccl/1\",\"source\":\"real\",\"simccl\":\"profiler plugin\",\"seed\":0,\"env\":{},\"epoch_unix_ns\":\"%lld\",\"clock\":\"CLOCK_MONOTONIC\",\"gpu_clock_sync\":[",
          (long long)(epoch + calendar()));
  for (int c = 0; c < ncomms; c++)
    fprintf(f, "%s{\"rank\":%d,\"offset_ns\":%lld,\"uncertainty_ns\":%lld}", c ? "," : "", comms[c].rank, (long long)offset[c], (long long)doubt[c]);
  fprintf(f, "]");
  print_part(f);
  fprintf(f, ",\"events\":%zu,\"left_out\":{\"all\":%llu}},\n\"traceEvents\":[\n", nlines, (unsigned long long)dropped);
  bool first = true;
  print_names(f, &first);
  for (size_t i = 0; i < nlines; i++) {
    int64_t t = lines[i].from - epoch, d = lines[i].to - lines[i].from;
    fprintf(f, "%s{\"ph\":\"X\",\"pid\":%ld,\"tid\":%d,\"ts\":%lld.%03lld,\"dur\":%lld.%03lld,%s}", first ? "" : ",\n", lines[i].pid, lines[i].tid,
            (long long)(t / 1000), (long long)(t % 1000), (long long)(d / 1000), (long long)(d % 1000), lines[i].text);
    first = false;
  }
  fprintf(f, "\n]}\n");
  for (int b = 0; b < BLOCKS && blocks[b]; b++) memset(blocks[b], 0, BLOCK * sizeof(*blocks[b]));
  used = 0;
  pthread_mutex_unlock(&lock);
  bool bad = ferror(f);
  bad = fclose(f) || bad;
  if (!strcmp(tmp, path)) return bad;
  bad = bad || rename(tmp, path);
  if (bad) unlink(tmp);
  return bad;
}

/* simccl_profiler_mask chooses the kinds of events from now on; 0 is none. */
void simccl_profiler_mask(int mask) {
  wanted = mask;
  if (mask_of_nccl) __atomic_store_n(mask_of_nccl, mask, __ATOMIC_RELAXED);
}

/* write_asked writes the file that SIMCCL_PROFILE_FILE asks for, if any event
 * is not written yet. */
static int write_asked(void) {
  const char *base = getenv("SIMCCL_PROFILE_FILE");
  if (!used || !base) return 0;
  char path[4096];
  snprintf(path, sizeof path, "%s.%d.json", base, (int)getpid());
  return simccl_profiler_write(path) ? 2 : 0;
}

static int finalize(void *context) {
  (void)context;
  pthread_mutex_lock(&lock);
  bool last = --alive == 0;
  pthread_mutex_unlock(&lock);
  return last ? write_asked() : 0;
}

__attribute__((destructor)) static void leave(void) {
  if (alive > 0) write_asked();
}

__attribute__((visibility("default"))) struct interface ncclProfiler_v5 = {"simccl", init, start, stop, state, finalize};
