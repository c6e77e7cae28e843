// libnccl.so.2 of simccl intercept: NCCL's interface (2.28.9) whose communicators
// are those of a virtual cluster. Numbers and structures are those of NCCL's
// documented binary interface; what each call has to refuse is checked here or by the
// collector, and has the code that NCCL returns.
#define _GNU_SOURCE
#include "live.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SUCCESS, CUDA_ERROR, SYSTEM_ERROR, INTERNAL_ERROR, INVALID_ARGUMENT, INVALID_USAGE, REMOTE_ERROR, IN_PROGRESS, RESULTS };
enum { SUM, PROD, MAX, MIN, AVG, BUILTIN_OPS };
enum { TYPES = 12 };
enum { F_BROADCAST, F_REDUCE, F_ALLGATHER, F_REDUCESCATTER, F_ALLREDUCE, F_SENDRECV, F_ALLTOALL, F_GATHER, F_SCATTER, F_SEND, F_RECV };
static const int type_size[TYPES] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

typedef int result;
typedef void *stream_t;
typedef struct { char bytes[128]; } unique_id;

typedef struct {
  size_t size;
  unsigned magic, version;
  int blocking, cga, min_ctas, max_ctas;
  const char *net;
  int split_share, traffic_class;
  const char *name;
  int collnet, policy, shrink_share, nvls_ctas, channels_per_peer, nvlink_sched;
} config;
enum { CONFIG_MAGIC = (int)0xcafebeef, VERSION = 22809, UNDEFINED = INT_MIN };

typedef struct {
  size_t size;
  unsigned magic, version;
  float estimate;
} sim_info;

struct red_op { int used, type, pointer; uint64_t scalar; };
struct region { void *at; size_t size; int window; struct region *next; };

enum { COMM_MAGIC = 0x51bcc10 };
struct comm {
  unsigned magic;
  int rank, ranks, dev, born; // born: simccl_forked() when it was made
  int ready;                  // init has been answered
  int failed;                 // its error, sticky
  int finalized, revoked, shares;
  uint64_t handle;
  config config;
  struct red_op *ops;
  int capacity;
  struct region *regions;
};
typedef struct comm *comm_t;

// --- errors ---

static __thread char last_error[1024];

// What is logged, by NCCL_DEBUG, NCCL_DEBUG_SUBSYS and NCCL_DEBUG_FILE, which
// ncclResetDebugInit reads again.
enum { LOG_NONE, LOG_WARN, LOG_INFO };
enum { LOG_INIT = 1, LOG_COLL = 2 };
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static int log_level = -1, log_parts;
static FILE *log_file;
static char log_host[64];

// log_parts_of reads a list of subsystems; ^ in front means all others.
static int log_parts_of(const char *list) {
  int parts = 0, invert = list && *list == '^';
  if (!list || !*list) return LOG_INIT;
  for (const char *p = list + invert; *p;) {
    size_t n = strcspn(p, ",");
    if (n == 3 && !strncasecmp(p, "ALL", 3)) parts |= LOG_INIT | LOG_COLL;
    if (n == 4 && !strncasecmp(p, "INIT", 4)) parts |= LOG_INIT;
    if (n == 4 && !strncasecmp(p, "COLL", 4)) parts |= LOG_COLL;
    p += n + (p[n] == ',');
  }
  return invert ? ~parts & (LOG_INIT | LOG_COLL) : parts;
}

// log_open opens the file of NCCL_DEBUG_FILE, in which %h is the host and %p the process.
static FILE *log_open(const char *pattern) {
  char name[1024];
  size_t n = 0;
  if (!pattern || !*pattern) return stdout;
  for (const char *p = pattern; *p && n < sizeof name - 80; p++) {
    if (*p == '%' && p[1] == 'h') n += (size_t)snprintf(name + n, 64, "%s", log_host), p++;
    else if (*p == '%' && p[1] == 'p') n += (size_t)snprintf(name + n, 16, "%d", getpid()), p++;
    else if (*p == '%' && p[1] == '%') name[n++] = '%', p++;
    else name[n++] = *p;
  }
  name[n] = 0;
  FILE *f = fopen(name, "we");
  return f ? f : stdout;
}

static void log_start(void) { // under log_lock
  const char *v = getenv("NCCL_DEBUG");
  if (log_file && log_file != stdout) fclose(log_file);
  gethostname(log_host, sizeof log_host - 1);
  log_level = !v ? LOG_NONE : !strcasecmp(v, "WARN") ? LOG_WARN : !strcasecmp(v, "INFO") || !strcasecmp(v, "TRACE") ? LOG_INFO : LOG_NONE;
  log_parts = log_parts_of(getenv("NCCL_DEBUG_SUBSYS"));
  log_file = log_level > LOG_NONE ? log_open(getenv("NCCL_DEBUG_FILE")) : stdout;
}

static int logs(int level, int parts) {
  if (log_level < 0) {
    pthread_mutex_lock(&log_lock);
    if (log_level < 0) log_start();
    pthread_mutex_unlock(&log_lock);
  }
  return log_level >= level && (log_parts & parts || level == LOG_WARN);
}

__attribute__((format(printf, 3, 4))) static void log_line(const char *level, int dev, const char *format, ...) {
  va_list args;
  va_start(args, format);
  pthread_mutex_lock(&log_lock);
  if (log_file) {
    fprintf(log_file, "%s:%d:%ld [%d] NCCL %s ", log_host, getpid(), syscall(SYS_gettid), dev, level);
    vfprintf(log_file, format, args);
    fputc('\n', log_file);
    fflush(log_file);
  }
  pthread_mutex_unlock(&log_lock);
  va_end(args);
}

__attribute__((format(printf, 2, 3))) static result refuse(result r, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(last_error, sizeof last_error, format, args);
  va_end(args);
  if (logs(LOG_WARN, 0)) log_line("WARN", 0, "%s", last_error);
  return r;
}

// answered turns the status of a reply into NCCL's code.
static result answered(const struct reply *r, const char *text) {
  if (r->status == STATUS_LOST) return refuse(REMOTE_ERROR, "%s", text);
  if (r->status) return refuse(r->status, "%s", text);
  return SUCCESS;
}

// live are the real devices, whose library is loaded where they take part.
static const struct live *live(void) {
  static const struct live *(*get)(void);
  if (!get) get = (const struct live *(*)(void))dlsym(RTLD_DEFAULT, "simccl_live");
  return get ? get() : NULL;
}

// call asks the collector, who knows of all calls before.
static void call(struct request *r, const void *payload, struct reply *out, char *text, size_t room) {
  const struct live *l = simccl_get()->live ? live() : NULL;
  if (l) l->tell();
  simccl_call(r, payload, out, text, room);
}

static result ask(struct request *r, const void *payload, struct reply *out) {
  char text[900];
  call(r, payload, out, text, sizeof text);
  return answered(out, text);
}

// --- devices ---

// The CUDA runtime of the program, real or of a machine without GPUs; none where it
// uses none.
static int find_cuda(struct dl_phdr_info *info, size_t size, void *name) {
  const char *base = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
  (void)size;
  if (!base || strncmp(base + 1, "libcudart.so", 12) || strlen(info->dlpi_name) >= 4096) return 0;
  strcpy(name, info->dlpi_name);
  return 1;
}

static void *cuda(const char *name) {
  void *f = dlsym(RTLD_DEFAULT, name);
  char file[4096];
  if (f || !dl_iterate_phdr(find_cuda, file)) return f;
  void *lib = dlopen(file, RTLD_LAZY | RTLD_NOLOAD); // a library that was opened for others alone
  if (!lib) return NULL;
  f = dlsym(lib, name);
  dlclose(lib);
  return f;
}

static __thread int none_device = -1; // of a thread without CUDA

static int device(void) {
  int dev = 0;
  if (simccl_get()->devices == DEVICES_NONE) return none_device < 0 ? 0 : none_device;
  if (simccl_get()->devices == DEVICES_VIRTUAL) return *simccl_device();
  int (*get)(int *) = (int (*)(int *))cuda("cudaGetDevice");
  return get && get(&dev) == 0 ? dev : 0;
}

static result attach(const char *who) {
  if (simccl_attach()) {
    const char *its = getenv("SIMCCL_INTERCEPT_HOST");
    char ours[64] = "";
    gethostname(ours, sizeof ours - 1);
    if (its && strcmp(its, ours))
      return refuse(SYSTEM_ERROR, "%s: this process is on host %s, and the collector of simccl intercept on %s: a job on several hosts is not built; start all of its processes on one", who, ours, its);
    return refuse(SYSTEM_ERROR, "%s: no collector: start the program by simccl intercept", who);
  }
  return SUCCESS;
}

// --- groups ---

struct init { comm_t comm; comm_t *out; };
static __thread int depth;
static __thread result group_error;
static __thread struct op *ops;
static __thread comm_t *op_comms;
static __thread int op_count, op_room;
static __thread struct init *inits;
static __thread int init_count, init_room;

static result note(result r) {
  if (depth > 0 && r != SUCCESS && r != IN_PROGRESS) group_error = r;
  return r;
}

static void drop(comm_t c) {
  c->magic = 0; // the memory stays: a use after this is refused and not undefined
}

// made logs a communicator that is ready; its id is the collector's.
static void made(comm_t c, int64_t id) {
  if (logs(LOG_INFO, LOG_INIT))
    log_line("INFO", c->dev, "ncclCommInitRank comm %p rank %d nranks %d cudaDev %d nvmlDev %d busId %x commId 0x%llx - Init COMPLETE", (void *)c, c->rank,
             c->ranks, c->dev, c->dev, (c->dev + 1) << 12, (unsigned long long)id + 1);
}

// wait_init waits until all ranks of a communicator have come.
static result wait_init(comm_t c) {
  simccl_freeze(); // others come when they do
  struct request r = {.type = REQ_WAIT_INIT, .a = {(int64_t)c->handle}};
  struct reply out;
  result res = ask(&r, NULL, &out);
  simccl_thaw(0);
  if (res == SUCCESS) {
    c->rank = (int)out.a[1];
    c->ranks = (int)out.a[2];
    c->ready = 1;
    made(c, out.a[0]);
  } else {
    c->failed = res;
  }
  return res;
}

static result state(comm_t c);

static result begin_inits(void) {
  result res = SUCCESS;
  for (int i = 0; i < init_count; i++) {
    comm_t c = inits[i].comm;
    if (!c->config.blocking) continue; // polled
    result one = wait_init(c);
    if (one != SUCCESS && res == SUCCESS) res = one;
    if (one != SUCCESS) *inits[i].out = NULL;
  }
  init_count = 0;
  return res;
}

static int64_t record_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

// sync waits for the operations of a group where no stream is there to wait on.
static result sync_group(void) {
  for (int i = 0; i < op_count; i++) {
    int seen = 0;
    for (int k = 0; k < i; k++) seen |= ops[k].dev == ops[i].dev && ops[k].stream == ops[i].stream;
    if (seen) continue;
    struct request r = {.type = REQ_SYNC, .a = {ops[i].dev, (int64_t)ops[i].stream}};
    struct reply out;
    result res = ask(&r, NULL, &out);
    if (res == SUCCESS) continue;
    if (res < RESULTS) return res;
    res = state(op_comms[i]); // an error of a stream is one of a communicator
    return res != SUCCESS ? res : refuse(REMOTE_ERROR, "the operation was ended: see the report of simccl intercept");
  }
  return SUCCESS;
}

static result launch(void) {
  const struct simccl_settings *s = simccl_get();
  uint32_t group = simccl_group(), thread = simccl_thread();
  int64_t now = s->time == TIME_RECORD ? record_now() : 0;
  for (int i = 0; i < op_count; i++) {
    ops[i].group = group;
    ops[i].thread = thread;
    ops[i].time = now;
  }
  if (s->time == TIME_RECORD) {
    simccl_record(ops, op_count);
    return SUCCESS;
  }
  if (s->live) {
    struct reply out;
    char text[900] = "";
    const struct live *l = live();
    if (!l) return refuse(INTERNAL_ERROR, "libsimccl-live.so is not loaded");
    return l->group(ops, op_count, &out, text, sizeof text) && !out.status ? INTERNAL_ERROR : answered(&out, text);
  }
  simccl_worked();
  struct request r = {.type = REQ_GROUP, .size = (uint32_t)(op_count * (int)sizeof *ops), .a = {op_count}};
  struct reply out;
  result res = ask(&r, ops, &out);
  if (res == SUCCESS && s->devices == DEVICES_NONE) res = sync_group();
  return res;
}

static result end_group(sim_info *info) {
  if (depth == 0) return refuse(INVALID_USAGE, "ncclGroupEnd: there is no ncclGroupStart before it");
  if (--depth > 0) return SUCCESS;
  result res = group_error;
  if (res == SUCCESS && init_count > 0) res = begin_inits();
  if (res == SUCCESS && info) {
    struct request r = {.type = REQ_GROUP, .size = (uint32_t)(op_count * (int)sizeof *ops), .a = {op_count, 1}};
    struct reply out;
    res = ask(&r, ops, &out);
    if (res == SUCCESS) info->estimate = (float)((double)out.a[0] * 1e-6);
  } else if (res == SUCCESS && op_count > 0) {
    res = launch();
  }
  if (res != SUCCESS) {
    for (int i = 0; i < op_count; i++)
      if (!op_comms[i]->config.blocking) op_comms[i]->failed = res;
    for (int i = 0; i < init_count; i++) *inits[i].out = NULL;
  }
  op_count = init_count = 0;
  group_error = SUCCESS;
  return res;
}

PUBLIC result ncclGroupStart(void) {
  depth++;
  return SUCCESS;
}

PUBLIC result ncclGroupEnd(void) { return end_group(NULL); }

PUBLIC result ncclGroupSimulateEnd(sim_info *info) {
  sim_info unused = {.size = sizeof unused};
  if (info && info->magic != 0x74685283) return refuse(INVALID_ARGUMENT, "ncclGroupSimulateEnd: simInfo is not initialised with NCCL_SIM_INFO_INITIALIZER");
  if (info && info->size < offsetof(sim_info, estimate) + sizeof(float)) info = NULL;
  return end_group(info ? info : &unused);
}

// --- communicators ---

static result known(comm_t c, const char *who) {
  if (!c) return refuse(INVALID_ARGUMENT, "%s: the communicator is NULL", who);
  if (c->magic != COMM_MAGIC) return refuse(INVALID_ARGUMENT, "%s: %p is no communicator, or was destroyed", who, (void *)c);
  if (c->born != simccl_forked()) return refuse(INVALID_USAGE, "%s: the communicator was made before fork, by another process", who);
  return SUCCESS;
}

// state is the communicator's asynchronous error.
static result state(comm_t c) {
  if (c->failed) return c->failed;
  if (simccl_lost()) return REMOTE_ERROR;
  struct request r = {.type = REQ_STATE, .a = {(int64_t)c->handle}};
  struct reply out;
  char text[900];
  call(&r, NULL, &out, text, sizeof text);
  if (out.status == STATUS_LOST) return REMOTE_ERROR;
  if (out.status && out.status != IN_PROGRESS) refuse(out.status, "%s", text);
  if (!out.status && !c->ready) {
    c->rank = (int)out.a[1];
    c->ranks = (int)out.a[2];
    c->ready = 1;
    made(c, out.a[0]);
  }
  return out.status;
}

static result ready(comm_t c, const char *who) {
  if (c->failed) return refuse(c->failed, "%s: an earlier operation on the communicator has failed", who);
  if (c->ready) return SUCCESS;
  result res = state(c);
  if (res == IN_PROGRESS) return refuse(INVALID_ARGUMENT, "%s: the communicator is still being made; poll ncclCommGetAsyncError first", who);
  return res;
}

PUBLIC result ncclGetVersion(int *version) {
  if (!version) return refuse(INVALID_ARGUMENT, "ncclGetVersion: version is NULL");
  *version = VERSION;
  return SUCCESS;
}

PUBLIC result ncclGetUniqueId(unique_id *id) {
  if (!id) return refuse(INVALID_ARGUMENT, "ncclGetUniqueId: the id is NULL");
  result res = attach("ncclGetUniqueId");
  if (res != SUCCESS) return res;
  memset(id, 0, sizeof *id);
  const char *fixed = getenv("NCCL_COMM_ID");
  memcpy(id->bytes, "simccl", 7);
  if (fixed && *fixed) {
    snprintf(id->bytes + 8, sizeof id->bytes - 8, "%s", fixed);
    return SUCCESS;
  }
  FILE *f = fopen("/dev/urandom", "re");
  if (!f || fread(id->bytes + 8, 1, 56, f) != 56) res = refuse(SYSTEM_ERROR, "ncclGetUniqueId: /dev/urandom cannot be read");
  if (f) fclose(f);
  return res;
}

static const config defaults = {sizeof(config), (unsigned)CONFIG_MAGIC, VERSION, UNDEFINED, UNDEFINED, UNDEFINED, UNDEFINED, NULL, UNDEFINED,
                                UNDEFINED, NULL, UNDEFINED, UNDEFINED, UNDEFINED, UNDEFINED, UNDEFINED, UNDEFINED};

static result bad_member(const char *name, int v) { return refuse(INVALID_ARGUMENT, "ncclConfig_t: %s is %d", name, v); }

// read_config reads what a program of any version gave, and checks it.
static result read_config(config *to, const config *from) {
  *to = defaults;
  if (from) {
    size_t n;
    memcpy(&n, from, sizeof n);
    memcpy(to, from, n < sizeof *to ? n : sizeof *to);
    if (to->magic != (unsigned)CONFIG_MAGIC) return refuse(INVALID_ARGUMENT, "ncclConfig_t: it is not initialised with NCCL_CONFIG_INITIALIZER");
    if (to->version < 2 * 10000 + 14 * 100) to->blocking = UNDEFINED;
    if (to->version < 2 * 10000 + 17 * 100) to->cga = to->min_ctas = to->max_ctas = UNDEFINED, to->net = NULL;
    if (to->version < 2 * 10000 + 25 * 100) to->traffic_class = UNDEFINED;
    if (to->version < 2 * 10000 + 27 * 100) to->collnet = to->policy = to->shrink_share = to->nvls_ctas = UNDEFINED;
    if (to->version < 2 * 10000 + 28 * 100) to->channels_per_peer = to->nvlink_sched = UNDEFINED;
  }
  const struct { const char *name; int v, low, high; } ranges[] = {
      {"blocking", to->blocking, 0, 1}, {"cgaClusterSize", to->cga, 0, INT_MAX}, {"minCTAs", to->min_ctas, 1, INT_MAX},
      {"maxCTAs", to->max_ctas, 1, INT_MAX}, {"splitShare", to->split_share, 0, 1}, {"collnetEnable", to->collnet, 0, 1},
      {"CTAPolicy", to->policy, 0, 2}, {"shrinkShare", to->shrink_share, 0, 1}, {"nvlsCTAs", to->nvls_ctas, 1, INT_MAX},
      {"nChannelsPerNetPeer", to->channels_per_peer, 1, 64}, {"nvlinkCentricSched", to->nvlink_sched, 0, 1}};
  for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
    if (ranges[i].v != UNDEFINED && (ranges[i].v < ranges[i].low || ranges[i].v > ranges[i].high)) return bad_member(ranges[i].name, ranges[i].v);
  if (to->min_ctas != UNDEFINED && to->max_ctas != UNDEFINED && to->min_ctas > to->max_ctas) return bad_member("minCTAs above maxCTAs", to->min_ctas);
  if (to->blocking == UNDEFINED) to->blocking = 1;
  const char *env = getenv("NCCL_COMM_BLOCKING");
  if (env && (*env == '0' || *env == '1')) to->blocking = *env == '1';
  if (to->split_share == UNDEFINED) to->split_share = 0;
  if (to->shrink_share == UNDEFINED) to->shrink_share = 0;
  return SUCCESS;
}

static comm_t new_comm(int dev) {
  comm_t c = calloc(1, sizeof *c);
  if (!c) return NULL;
  c->magic = COMM_MAGIC;
  c->dev = dev;
  c->born = simccl_forked();
  return c;
}

// queue_init has a communicator waited for when the group ends.
static result queue_init(comm_t c, comm_t *out) {
  if (init_count == init_room) {
    struct init *more = realloc(inits, (size_t)(init_room * 2 + 8) * sizeof *more);
    if (!more) return refuse(SYSTEM_ERROR, "out of memory");
    inits = more;
    init_room = init_room * 2 + 8;
  }
  inits[init_count++] = (struct init){c, out};
  return SUCCESS;
}

static result init_rank(comm_t *out, int ranks, const unique_id *id, int rank, int dev, const config *given, const char *who) {
  result res = attach(who);
  config cfg;
  if (res != SUCCESS) return res;
  if (!out) return refuse(INVALID_ARGUMENT, "%s: the communicator's address is NULL", who);
  *out = NULL;
  if ((res = read_config(&cfg, given)) != SUCCESS) return res;
  if (ranks < 1 || rank < 0 || rank >= ranks) return refuse(INVALID_ARGUMENT, "%s: rank %d of %d ranks", who, rank, ranks);
  if (simccl_get()->live) {
    char why[200];
    const struct live *l = live();
    if (!l) return refuse(INTERNAL_ERROR, "libsimccl-live.so is not loaded");
    if (l->start(why, sizeof why)) return refuse(CUDA_ERROR, "%s: %s", who, why);
  }
  comm_t c = new_comm(dev);
  if (!c) return refuse(SYSTEM_ERROR, "out of memory");
  c->config = cfg;
  c->rank = rank;
  c->ranks = ranks;
  struct request r = {.type = REQ_INIT, .size = sizeof *id, .a = {ranks, rank, dev, cfg.blocking, cfg.split_share}};
  struct reply reply;
  simccl_worked();
  if ((res = ask(&r, id, &reply)) != SUCCESS) {
    drop(c);
    return res;
  }
  c->handle = (uint64_t)reply.a[0];
  *out = c;
  return queue_init(c, out);
}

// init_device is the device that a thread makes a communicator for.
static int init_device(int rank) {
  if (simccl_get()->devices != DEVICES_NONE) return device();
  if (depth > 1) return rank; // of several in one group
  if (none_device < 0) none_device = rank;
  return none_device;
}

static result init_one(comm_t *out, int ranks, const unique_id *id, int rank, const config *cfg, const char *who) {
  result res = attach(who);
  if (res != SUCCESS) return note(res);
  depth++;
  res = note(init_rank(out, ranks, id, rank, init_device(rank), cfg, who));
  result end = end_group(NULL);
  if (res == SUCCESS) res = end;
  if (res == SUCCESS && out && *out && !(*out)->config.blocking) res = state(*out);
  return res;
}

PUBLIC result ncclCommInitRank(comm_t *out, int ranks, unique_id id, int rank) { return init_one(out, ranks, &id, rank, NULL, "ncclCommInitRank"); }

PUBLIC result ncclCommInitRankConfig(comm_t *out, int ranks, unique_id id, int rank, config *cfg) {
  return init_one(out, ranks, &id, rank, cfg, "ncclCommInitRankConfig");
}

PUBLIC result ncclCommInitRankScalable(comm_t *out, int ranks, int rank, int n, unique_id *ids, config *cfg) {
  if (n < 1 || n > ranks || !ids) return note(refuse(INVALID_ARGUMENT, "ncclCommInitRankScalable: %d ids for %d ranks", n, ranks));
  return init_one(out, ranks, &ids[0], rank, cfg, "ncclCommInitRankScalable");
}

static result check_list(const int *list, int n) {
  int count = simccl_get()->count;
  for (int i = 0; i < n; i++) {
    if (list[i] < 0 || list[i] >= count) return refuse(INVALID_ARGUMENT, "ncclCommInitAll: device %d of %d", list[i], count);
    for (int k = 0; k < i; k++)
      if (list[k] == list[i]) return refuse(INVALID_USAGE, "ncclCommInitAll: device %d is listed twice", list[i]);
  }
  return SUCCESS;
}

PUBLIC result ncclCommInitAll(comm_t *comms, int n, const int *list) {
  result res = attach("ncclCommInitAll");
  unique_id id;
  if (res != SUCCESS) return res;
  if (!comms) return refuse(INVALID_ARGUMENT, "ncclCommInitAll: comms is NULL");
  if (n < 0) return refuse(INVALID_ARGUMENT, "ncclCommInitAll: %d devices", n);
  if (list && (res = check_list(list, n)) != SUCCESS) return res;
  if (!list && simccl_get()->devices != DEVICES_REAL && n > simccl_get()->count)
    return refuse(CUDA_ERROR, "ncclCommInitAll: %d devices, and the machine has %d; take more nodes", n, simccl_get()->count);
  if ((res = ncclGetUniqueId(&id)) != SUCCESS) return res;
  depth++;
  for (int i = 0; i < n; i++) note(init_rank(&comms[i], n, &id, i, list ? list[i] : i, NULL, "ncclCommInitAll"));
  return end_group(NULL);
}

// child_of makes the communicator of a split or a shrink.
static result child_of(comm_t parent, comm_t *out, const config *given, struct request *r, const void *payload, int color) {
  config cfg = parent->config;
  result res = SUCCESS;
  if (given && (res = read_config(&cfg, given)) != SUCCESS) return res;
  *out = NULL;
  struct reply reply;
  r->a[5] = cfg.blocking;
  simccl_worked();
  if ((res = ask(r, payload, &reply)) != SUCCESS || color < 0) return res;
  comm_t c = new_comm(parent->dev);
  if (!c) return refuse(SYSTEM_ERROR, "out of memory");
  c->config = cfg;
  c->handle = (uint64_t)reply.a[0];
  *out = c;
  return queue_init(c, out);
}

PUBLIC result ncclCommSplit(comm_t comm, int color, int key, comm_t *out, config *cfg) {
  result res = known(comm, "ncclCommSplit");
  depth++;
  if (res == SUCCESS && !out) res = refuse(INVALID_ARGUMENT, "ncclCommSplit: newcomm is NULL");
  if (res == SUCCESS && color < -1) res = refuse(INVALID_ARGUMENT, "ncclCommSplit: color %d", color);
  if (res == SUCCESS) res = ready(comm, "ncclCommSplit");
  if (res == SUCCESS) {
    struct request r = {.type = REQ_SPLIT, .a = {(int64_t)comm->handle, color, key, !comm->revoked && comm->config.split_share}};
    res = child_of(comm, out, cfg, &r, NULL, color);
  }
  note(res);
  result end = end_group(NULL);
  return res != SUCCESS ? res : end;
}

static int less(const void *a, const void *b) { return *(const int *)a < *(const int *)b ? -1 : *(const int *)a > *(const int *)b; }

PUBLIC result ncclCommShrink(comm_t comm, int *list, int n, comm_t *out, config *cfg, int flags) {
  result res = known(comm, "ncclCommShrink");
  depth++;
  if (res == SUCCESS && (!out || !list || n < 1)) res = refuse(INVALID_ARGUMENT, "ncclCommShrink: it needs at least one rank that is excluded, and newcomm");
  if (res == SUCCESS) res = ready(comm, "ncclCommShrink");
  if (res == SUCCESS) {
    qsort(list, (size_t)n, sizeof *list, less);
    if (bsearch(&comm->rank, list, (size_t)n, sizeof *list, less)) res = refuse(INVALID_ARGUMENT, "ncclCommShrink: rank %d excludes itself", comm->rank);
  }
  if (res == SUCCESS) {
    struct request r = {.type = REQ_SHRINK, .size = (uint32_t)n * sizeof *list,
                        .a = {(int64_t)comm->handle, flags, n, !comm->revoked && !(flags & 1) && comm->config.shrink_share}};
    res = child_of(comm, out, cfg, &r, list, 0);
  }
  note(res);
  result end = end_group(NULL);
  return res != SUCCESS ? res : end;
}

enum { LEAVE_DESTROY, LEAVE_ABORT, LEAVE_REVOKE, LEAVE_FINALIZE };

static result leave(comm_t c, int how) {
  struct request r = {.type = REQ_LEAVE, .a = {(int64_t)c->handle, how}};
  struct reply out;
  result res = ask(&r, NULL, &out);
  return simccl_lost() ? SUCCESS : res;
}

PUBLIC result ncclCommFinalize(comm_t c) {
  if (!c) return SUCCESS;
  result res = known(c, "ncclCommFinalize");
  if (res == SUCCESS) res = ready(c, "ncclCommFinalize");
  if (res == SUCCESS && c->finalized) res = refuse(INVALID_ARGUMENT, "ncclCommFinalize: it was called before");
  if (res != SUCCESS) return note(res);
  c->finalized = 1;
  if (simccl_get()->time == TIME_RECORD) return SUCCESS;
  struct request r = {.type = REQ_SYNC_COMM, .a = {(int64_t)c->handle}};
  struct reply out;
  return note(ask(&r, NULL, &out));
}

PUBLIC result ncclCommDestroy(comm_t c) {
  if (!c) return SUCCESS;
  result res = known(c, "ncclCommDestroy");
  if (res == SUCCESS && !c->ready && !c->failed && !c->config.blocking) res = ready(c, "ncclCommDestroy");
  if (res != SUCCESS) return note(res);
  res = leave(c, LEAVE_DESTROY);
  drop(c);
  return note(res);
}

// forget takes the operations of an aborted communicator out of the open group.
static void forget(comm_t c) {
  int n = 0;
  for (int i = 0; i < op_count; i++) {
    if (op_comms[i] == c) continue;
    ops[n] = ops[i];
    op_comms[n++] = op_comms[i];
  }
  op_count = n;
  n = 0;
  for (int i = 0; i < init_count; i++)
    if (inits[i].comm != c) inits[n++] = inits[i];
  init_count = n;
}

PUBLIC result ncclCommAbort(comm_t c) {
  if (!c) return SUCCESS;
  result res = known(c, "ncclCommAbort");
  if (res != SUCCESS) return note(res);
  forget(c);
  res = leave(c, LEAVE_ABORT);
  drop(c);
  return note(res);
}

PUBLIC result ncclCommRevoke(comm_t c, int flags) {
  if (!c) return SUCCESS;
  result res = known(c, "ncclCommRevoke");
  if (res == SUCCESS && (flags || c->finalized || c->revoked)) res = refuse(INVALID_ARGUMENT, "ncclCommRevoke: flags %d, or it is revoked or finalized", flags);
  if (res != SUCCESS) return note(res);
  c->revoked = c->finalized = 1;
  forget(c);
  return note(leave(c, LEAVE_REVOKE));
}

PUBLIC result ncclCommGetAsyncError(comm_t c, result *out) {
  result res = known(c, "ncclCommGetAsyncError");
  if (res != SUCCESS) return res;
  if (!out) return refuse(INVALID_ARGUMENT, "ncclCommGetAsyncError: asyncError is NULL");
  *out = state(c);
  return SUCCESS;
}

static result member(comm_t c, int *out, int v, const char *who) {
  result res = known(c, who);
  if (res != SUCCESS) return res;
  if (!out) return refuse(INVALID_ARGUMENT, "%s: the address of the result is NULL", who);
  if ((res = ready(c, who)) != SUCCESS) return res;
  *out = v < 0 ? c->ranks : v;
  return SUCCESS;
}

PUBLIC result ncclCommCount(const comm_t c, int *count) { return member(c, count, -1, "ncclCommCount"); }
PUBLIC result ncclCommCuDevice(const comm_t c, int *dev) { return member(c, dev, c ? c->dev : 0, "ncclCommCuDevice"); }

PUBLIC result ncclCommUserRank(const comm_t c, int *rank) {
  int unused;
  result res = member(c, rank ? &unused : NULL, -1, "ncclCommUserRank");
  if (res == SUCCESS) *rank = c->rank;
  return res;
}

PUBLIC const char *ncclGetErrorString(result r) {
  static const char *const words[RESULTS] = {"no error", "CUDA error", "system error", "internal error", "invalid argument", "invalid usage",
                                             "a remote process has ended, or the network failed", "operation in progress"};
  return r >= 0 && r < RESULTS ? words[r] : "unknown result";
}

PUBLIC const char *ncclGetLastError(const comm_t c) {
  (void)c;
  return last_error;
}

PUBLIC void ncclResetDebugInit(void) {
  pthread_mutex_lock(&log_lock);
  log_start();
  pthread_mutex_unlock(&log_lock);
}

// The same, by the name that debug.cc of 2.28 gives it.
PUBLIC void ncclResetDebugInitInternal(void) { ncclResetDebugInit(); }

// --- registration ---

static struct region *add_region(comm_t c, void *at, size_t size, int window) {
  struct region *g = malloc(sizeof *g);
  if (!g) return NULL;
  *g = (struct region){at, size, window, c->regions};
  return c->regions = g;
}

static result drop_region(comm_t c, void *handle, const char *who) {
  for (struct region **p = &c->regions; *p; p = &(*p)->next) {
    if (*p != handle) continue;
    struct region *g = *p;
    *p = g->next;
    free(g);
    return SUCCESS;
  }
  return refuse(INVALID_ARGUMENT, "%s: %p was not registered with this communicator", who, handle);
}

PUBLIC result ncclCommRegister(const comm_t c, void *at, size_t size, void **handle) {
  result res = known(c, "ncclCommRegister");
  if (res != SUCCESS) return res;
  if (!at || !handle || !size) return refuse(INVALID_ARGUMENT, "ncclCommRegister: %zu bytes at %p", size, at);
  *handle = add_region(c, at, size, 0);
  return *handle ? SUCCESS : refuse(SYSTEM_ERROR, "out of memory");
}

PUBLIC result ncclCommDeregister(const comm_t c, void *handle) {
  result res = known(c, "ncclCommDeregister");
  if (res != SUCCESS || !handle) return res;
  return drop_region(c, handle, "ncclCommDeregister");
}

PUBLIC result ncclCommWindowRegister(comm_t c, void *at, size_t size, void **window, int flags) {
  result res = known(c, "ncclCommWindowRegister");
  if (res != SUCCESS) return note(res);
  if (!window || !at || !size) return note(refuse(INVALID_ARGUMENT, "ncclCommWindowRegister: %zu bytes at %p", size, at));
  if ((flags & 1) && (uintptr_t)at % 4096) return note(refuse(INVALID_ARGUMENT, "ncclCommWindowRegister: %p is not aligned to 4096 bytes", at));
  *window = add_region(c, at, size, flags & 1 ? 2 : 1);
  return *window ? SUCCESS : refuse(SYSTEM_ERROR, "out of memory");
}

PUBLIC result ncclCommWindowDeregister(comm_t c, void *window) {
  result res = known(c, "ncclCommWindowDeregister");
  if (res != SUCCESS || !window) return res;
  return drop_region(c, window, "ncclCommWindowDeregister");
}

static int region_of(comm_t c, const void *at) {
  for (struct region *g = c->regions; g; g = g->next)
    if ((const char *)at >= (char *)g->at && (const char *)at < (char *)g->at + g->size) return 1 + g->window;
  return 0;
}

PUBLIC result ncclMemAlloc(void **out, size_t size) {
  if (!out) return refuse(CUDA_ERROR, "ncclMemAlloc: the address of the result is NULL");
  *out = NULL;
  if (!size) return SUCCESS; // as cudaMalloc does, which NCCL calls then
  int (*get)(void **, size_t) = (int (*)(void **, size_t))cuda("cudaMalloc");
  if (get) return get(out, size) ? refuse(CUDA_ERROR, "ncclMemAlloc: cudaMalloc of %zu bytes failed", size) : SUCCESS;
  return posix_memalign(out, 4096, size) ? refuse(SYSTEM_ERROR, "ncclMemAlloc: %zu bytes", size) : SUCCESS;
}

PUBLIC result ncclMemFree(void *at) {
  int (*put)(void *) = (int (*)(void *))cuda("cudaFree");
  if (put) return put(at) ? refuse(CUDA_ERROR, "ncclMemFree: %p", at) : SUCCESS;
  free(at);
  return SUCCESS;
}

// --- reductions of a program ---

// Handles of communicators differ, so that one does not fit another.
static int mangle(comm_t c, int op) {
  unsigned h = (unsigned)(c->handle * 2654435761u) & 0x3fffff00u;
  return op < BUILTIN_OPS ? op : op ^ (int)h;
}

static struct red_op *user_op(comm_t c, int op) {
  int i = mangle(c, op) - BUILTIN_OPS;
  return i >= 0 && i < c->capacity && c->ops[i].used ? &c->ops[i] : NULL;
}

PUBLIC result ncclRedOpCreatePreMulSum(int *op, void *scalar, int type, int residence, comm_t c) {
  result res = known(c, "ncclRedOpCreatePreMulSum");
  if (res == SUCCESS) res = ready(c, "ncclRedOpCreatePreMulSum");
  if (res != SUCCESS) return res;
  if (!op || !scalar || type < 0 || type >= TYPES) return refuse(INVALID_ARGUMENT, "ncclRedOpCreatePreMulSum: type %d, scalar %p", type, scalar);
  int i = 0;
  while (i < c->capacity && c->ops[i].used) i++;
  if (i == c->capacity) {
    int room = i ? 2 * i : 4;
    struct red_op *more = realloc(c->ops, (size_t)room * sizeof *more);
    if (!more) return refuse(SYSTEM_ERROR, "out of memory");
    memset(more + i, 0, (size_t)(room - i) * sizeof *more);
    c->ops = more;
    c->capacity = room;
  }
  c->ops[i] = (struct red_op){1, type, residence == 0, 0};
  if (residence == 0) c->ops[i].scalar = (uintptr_t)scalar;
  else memcpy(&c->ops[i].scalar, scalar, (size_t)type_size[type]);
  *op = mangle(c, BUILTIN_OPS + i);
  return SUCCESS;
}

PUBLIC result ncclRedOpDestroy(int op, comm_t c) {
  if (op >= 0 && op < BUILTIN_OPS) return refuse(INVALID_ARGUMENT, "ncclRedOpDestroy: %d is NCCL's own", op);
  if (op < 0 || !c) return refuse(INVALID_ARGUMENT, "ncclRedOpDestroy: operator %d of communicator %p", op, (void *)c);
  result res = known(c, "ncclRedOpDestroy");
  if (res != SUCCESS) return res;
  struct red_op *u = user_op(c, op);
  if (!u) return refuse(INVALID_ARGUMENT, "ncclRedOpDestroy: this communicator has no operator %d", op);
  u->used = 0;
  return SUCCESS;
}

// --- operations ---

static result check(const char *who, comm_t c, int func, int type, int op, int root) {
  if (root < 0 || root >= c->ranks) return refuse(INVALID_ARGUMENT, "%s: %s %d of %d ranks", who, func >= F_SEND ? "peer" : "root", root, c->ranks);
  if (type < 0 || type >= TYPES) return refuse(INVALID_ARGUMENT, "%s: type %d", who, type);
  if (op < 0) return refuse(INVALID_ARGUMENT, "%s: reduction %d", who, op);
  if (op >= BUILTIN_OPS) {
    struct red_op *u = user_op(c, op);
    if (!u) return refuse(INVALID_ARGUMENT, "%s: this communicator has no reduction %d", who, op);
    if (u->type != type) return refuse(INVALID_ARGUMENT, "%s: the reduction was made for type %d and not %d", who, u->type, type);
  }
  int reduces = func == F_REDUCE || func == F_ALLREDUCE || func == F_REDUCESCATTER;
  if (reduces && type >= 10 && simccl_get()->sm < 90) return refuse(INVALID_ARGUMENT, "%s: sums of 8-bit floats need GPUs of sm90", who);
  return SUCCESS;
}

static int in_place(comm_t c, int func, const void *send, const void *recv, size_t count, int type) {
  size_t part = count * (size_t)type_size[type];
  const char *s = send, *r = recv;
  switch (func) {
  case F_ALLGATHER: return s == r + (size_t)c->rank * part;
  case F_REDUCESCATTER: return r == s + (size_t)c->rank * part;
  case F_SEND: case F_RECV: case F_ALLTOALL: case F_GATHER: case F_SCATTER: return 0;
  }
  return s == r;
}

static result append(comm_t c, const struct op *o) {
  if (op_count == op_room) {
    int room = op_room * 2 + 64;
    struct op *more = realloc(ops, (size_t)room * sizeof *more);
    if (more) ops = more;
    comm_t *also = realloc(op_comms, (size_t)room * sizeof *also);
    if (also) op_comms = also;
    if (!more || !also) return refuse(SYSTEM_ERROR, "out of memory");
    op_room = room;
  }
  op_comms[op_count] = c;
  ops[op_count++] = *o;
  return SUCCESS;
}

static result add(const char *who, int func, const void *send, void *recv, size_t count, int type, int op, int root, comm_t c, stream_t stream) {
  result res = ready(c, who);
  if (res == SUCCESS) res = check(who, c, func, type, op, root);
  if (res == SUCCESS && logs(LOG_INFO, LOG_COLL))
    log_line("INFO", c->dev, "%s: opCount 0 sendbuff %p recvbuff %p count %zu datatype %d op %d root %d comm %p [nranks=%d] stream %p", who,
             func >= F_SEND ? NULL : send, func == F_SEND ? (void *)(uintptr_t)send : recv, count, type, op, root, (void *)c, c->ranks, stream);
  if (res != SUCCESS || (count == 0 && func < F_SEND)) return res;
  struct op o = {.comm = c->handle, .stream = (uintptr_t)stream, .count = count, .send = (uintptr_t)send, .recv = (uintptr_t)recv,
                 .func = (int16_t)func, .type = (int16_t)type, .redop = op, .root = root, .dev = c->dev};
  struct red_op *u = op >= BUILTIN_OPS ? user_op(c, op) : NULL;
  if (u) {
    o.redop = BUILTIN_OPS;
    o.scalar = u->scalar;
    if (u->pointer) o.flags |= OP_SCALAR_POINTER;
  }
  if (in_place(c, func, send, recv, count, type)) o.flags |= OP_IN_PLACE;
  if (c->regions) {
    int a = region_of(c, func == F_RECV ? recv : send), b = region_of(c, func == F_SEND ? send : recv);
    if (a && b) o.flags |= OP_REGISTERED;
    if (a == 3 && b == 3) o.flags |= OP_WINDOW;
  }
  return append(c, &o);
}

static result enqueue(const char *who, int func, const void *send, void *recv, size_t count, int type, int op, int root, comm_t c, stream_t stream) {
  result res = known(c, who);
  if (res != SUCCESS) return note(res);
  if (c->revoked) return note(refuse(INVALID_USAGE, "%s: the communicator was revoked", who));
  depth++;
  res = add(who, func, send, recv, count, type, op, root, c, stream);
  note(res);
  if (res != SUCCESS && !c->config.blocking) c->failed = res;
  result end = end_group(NULL);
  return res != SUCCESS ? res : end;
}

PUBLIC result ncclAllReduce(const void *s, void *r, size_t n, int type, int op, comm_t c, stream_t st) {
  return enqueue("AllReduce", F_ALLREDUCE, s, r, n, type, op, 0, c, st);
}
PUBLIC result ncclReduce(const void *s, void *r, size_t n, int type, int op, int root, comm_t c, stream_t st) {
  return enqueue("Reduce", F_REDUCE, s, r, n, type, op, root, c, st);
}
PUBLIC result ncclBroadcast(const void *s, void *r, size_t n, int type, int root, comm_t c, stream_t st) {
  return enqueue("Broadcast", F_BROADCAST, s, r, n, type, SUM, root, c, st);
}
PUBLIC result ncclBcast(void *b, size_t n, int type, int root, comm_t c, stream_t st) {
  return enqueue("Broadcast", F_BROADCAST, b, b, n, type, SUM, root, c, st);
}
PUBLIC result ncclAllGather(const void *s, void *r, size_t n, int type, comm_t c, stream_t st) {
  return enqueue("AllGather", F_ALLGATHER, s, r, n, type, SUM, 0, c, st);
}
PUBLIC result ncclReduceScatter(const void *s, void *r, size_t n, int type, int op, comm_t c, stream_t st) {
  return enqueue("ReduceScatter", F_REDUCESCATTER, s, r, n, type, op, 0, c, st);
}
PUBLIC result ncclAlltoAll(const void *s, void *r, size_t n, int type, comm_t c, stream_t st) {
  return enqueue("AlltoAll", F_ALLTOALL, s, r, n, type, SUM, 0, c, st);
}
PUBLIC result ncclGather(const void *s, void *r, size_t n, int type, int root, comm_t c, stream_t st) {
  return enqueue("Gather", F_GATHER, s, r, n, type, SUM, root, c, st);
}
PUBLIC result ncclScatter(const void *s, void *r, size_t n, int type, int root, comm_t c, stream_t st) {
  return enqueue("Scatter", F_SCATTER, s, r, n, type, SUM, root, c, st);
}
PUBLIC result ncclSend(const void *s, size_t n, int type, int peer, comm_t c, stream_t st) {
  return enqueue("Send", F_SEND, s, NULL, n, type, SUM, peer, c, st);
}
PUBLIC result ncclRecv(void *r, size_t n, int type, int peer, comm_t c, stream_t st) {
  return enqueue("Recv", F_RECV, NULL, r, n, type, SUM, peer, c, st);
}

// --- what the program's own kernels would need, and later versions ---

static result absent(const char *who, const char *why) { return refuse(INVALID_USAGE, "%s: %s", who, why); }

static const char kernels[] = "kernels of the program cannot be carried out on GPUs that are not there";
PUBLIC result ncclDevCommCreate(comm_t c, const void *q, void *out) { (void)c, (void)q, (void)out; return absent("ncclDevCommCreate", kernels); }
PUBLIC result ncclDevCommDestroy(comm_t c, const void *d) { (void)c, (void)d; return absent("ncclDevCommDestroy", kernels); }
PUBLIC result ncclLsaBarrierCreateRequirement(void) { return absent("ncclLsaBarrierCreateRequirement", kernels); }
PUBLIC result ncclGinBarrierCreateRequirement(void) { return absent("ncclGinBarrierCreateRequirement", kernels); }
PUBLIC result ncclLLA2ACreateRequirement(void) { return absent("ncclLLA2ACreateRequirement", kernels); }

PUBLIC int ncclLLA2ACalcSlots(int elements, int size) {
  (void)elements, (void)size;
  absent("ncclLLA2ACalcSlots", kernels);
  return 0;
}

typedef struct { int ranks, rank, stride; } team;
static team world(comm_t c) { return known(c, "ncclTeamWorld") == SUCCESS && ready(c, "ncclTeamWorld") == SUCCESS ? (team){c->ranks, c->rank, 1} : (team){0, 0, 0}; }
PUBLIC team ncclTeamWorld(comm_t c) { return world(c); }

PUBLIC team ncclTeamLsa(comm_t c) {
  (void)c;
  absent("ncclTeamLsa", kernels);
  return (team){0, 0, 0};
}

PUBLIC team ncclTeamRail(comm_t c) {
  (void)c;
  absent("ncclTeamRail", kernels);
  return (team){0, 0, 0};
}

PUBLIC int ncclTeamRankToWorld(comm_t c, team t, int rank) {
  team w = world(c);
  return w.rank + (rank - t.rank) * t.stride;
}

PUBLIC int ncclTeamRankToLsa(comm_t c, team t, int rank) {
  (void)c, (void)t, (void)rank;
  absent("ncclTeamRankToLsa", kernels);
  return -1;
}

// Each function has a second name, with a p in front. LATER names are of versions
// after 2.28.9: a program that lists them loads, and learns that they are not here.
#define ALIAS(name) PUBLIC __typeof__(name) p##name __attribute__((alias(#name)));
#define LATER(name)                                                                                    \
  PUBLIC result name(void) { return absent(#name, "it is of a version after 2.28.9, which this is"); } \
  ALIAS(name)
#include "names.h"
