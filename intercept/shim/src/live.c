// Real GPUs of this machine as GPUs of a virtual cluster (--devices real).
//
// A stream is cut into segments at each call of NCCL, event and wait. CUDA's events
// time them, and the collector, who has the same streams, learns what each takes. A
// call of NCCL makes its stream wait for a word of host memory, which is written
// when the operation has been carried out.
//
// Where compute is timed (--time measured), what the host launches waits behind a gate,
// another word, until the host waits for the GPU or has launched much. The process gets the
// GPU for itself then, the gate is opened, and what was launched runs as one stretch to its
// end, or to a call of NCCL that other ranks have not come to; behind that it goes on when
// the process has the GPU again. So kernels run alone and without waiting for the host, and
// the host without waiting for kernels: its time and the GPU's are measured apart, as if
// every rank had its own GPU.
//
// Two threads serve a process: one looks for segments that have ended, one carries out what
// the collector asks for. A third one opens a gate that the host waits behind.
#define _GNU_SOURCE
#include "live.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { NOT_READY = 600, MARK = 0x51 };

// --- CUDA ---

static int find_cudart(struct dl_phdr_info *info, size_t size, void *name) {
  const char *base = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
  (void)size;
  if (!base || strncmp(base + 1, "libcudart.so", 12) || strlen(info->dlpi_name) >= 4096) return 0;
  strcpy(name, info->dlpi_name);
  return 1;
}

// runtime is a function of the program's CUDA runtime, which functions of this library
// with the same name stand before.
static void *runtime(const char *name) {
  static void *lib;
  char file[4096];
  if (!lib && dl_iterate_phdr(find_cudart, file)) lib = dlopen(file, RTLD_LAZY | RTLD_NOLOAD);
  return lib ? dlsym(lib, name) : dlsym(RTLD_NEXT, name);
}

static struct {
#define X(name, args) error(*name) args;
  DRIVER(X)
#undef X
} D;

static const char *driver_missing(void) {
  void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (!lib) return "libcuda.so.1";
#define X(name, args) \
  if (!(D.name = (error(*) args)dlsym(lib, #name))) return #name;
  DRIVER(X)
#undef X
  return NULL;
}

// --- segments ---

// A place in a stream, and what it waits for there: a closing of the gate, a word that becomes
// value, the end of what another stream has done; also: a place before it that nothing runs at.
struct mark {
  handle e;
  int uses;
  uint32_t gate, value;
  const uint32_t *word;
  struct mark *after, *also, *next;
};
struct known { // where an event was recorded
  handle e;
  struct mark *m;
  const uint32_t *word; // written there with value, where the stream may wait for the cluster before; or NULL
  uint64_t at;
  uint32_t value;
  struct known *next;
};
struct segment {
  uint64_t id;
  int loose; // the host launched while the gate was open: this is not how long the GPU was busy
  struct mark *from, *to;
  // Of a graph, whose events are those of every replay: words that say so, and the one of the call before it.
  const uint32_t *begun, *ended, *word;
  int64_t most;                  // us, -1 for as measured
  struct segment *next;
};
struct lane { // a stream
  handle stream;
  int dev;
  uint64_t id;
  struct mark *open; // where the segment that is not closed yet began
  int64_t opened;    // ps, on the host's clock
  struct segment *first, **last;
  uint32_t *word;    // what the stream waits for
  uint64_t at;       // the same, on the device
  uint32_t issued;   // waits so far
  uint32_t *been, came; // a word that the stream itself writes: how often so far
  uint64_t been_at;
  int destroyed;     // by the program
  int64_t seen, busy; // us: when the open segment's beginning was seen, and when it ran last
  int64_t ran;        // us: when kernels of the program were seen on it last
  int64_t due;        // us: when nothing was seen to hold it up any more
  struct lane *next;
};
struct ticket { uint64_t id; uint32_t *word, value; struct ticket *next; };

static pthread_mutex_t host = PTHREAD_MUTEX_INITIALIZER;  // of threads of the program that call
static pthread_mutex_t turns = PTHREAD_MUTEX_INITIALIZER; // of holding and releases
static pthread_mutex_t lists = PTHREAD_MUTEX_INITIALIZER; // of what follows
static struct lane *lanes;
static struct mark *spare;
static struct known *known[1024];
static struct ticket *tickets;
static atomic_int outstanding, blocked, holding, on;
static int in_capture; // of streams that are captured, which nobody may ask about; under lists
static atomic_uint releases;
static uint64_t segments, issued;
static uint32_t *words;
static uint64_t words_at;
static unsigned words_used;
enum { WORDS = 16384 };
static handle context;
static int home; // the device of the context
static int generation;

// The gate: streams go on behind its n-th closing once its word is n or above.
static struct { uint32_t *word, closed; uint64_t at; } gate;
static atomic_int syncing;    // threads that wait for streams by CUDA's functions
static atomic_int throttled;  // threads that are held at their calls
static atomic_int stretching; // threads of the program that run a stretch
static atomic_int looking;    // the thread that looks may read the words
static atomic_int early;      // the gate was opened before the host's next call
static atomic_int launches;   // since the gate was shut
static atomic_int steady;     // launches since the program has loaded a kernel or asked for memory
static atomic_int calm = 1024; // launches behind which a program does neither any more; -1: it always may
static _Atomic int64_t active; // us: when the host called something last

// runs_ahead reports whether the host goes on at its calls before they are carried out.
static int runs_ahead(void) {
  int launches_until = atomic_load(&calm);
  return launches_until >= 0 && gate.closed > 0 && atomic_load(&steady) >= launches_until;
}

static atomic_uint changes;  // of what threads wait for until the collector says so

static void changed(void) {
  atomic_fetch_add(&changes, 1);
  syscall(SYS_futex, &changes, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

// unchanged waits for a change after one that was seen, or for some microseconds. Hosts of many
// ranks that wait asleep leave the processors to those that work.
static void unchanged(unsigned seen, int64_t us) {
  struct timespec t = {us / 1000000, us % 1000000 * 1000};
  syscall(SYS_futex, &changes, FUTEX_WAIT_PRIVATE, seen, &t, NULL, 0);
}

static int measured(void) { return simccl_get()->time == TIME_MEASURED; }
static int live_on(void) { return atomic_load(&on) && generation == simccl_forked() && !simccl_lost(); }

static int gate_shut(void) { return __atomic_load_n(gate.word, __ATOMIC_ACQUIRE) != __atomic_load_n(&gate.closed, __ATOMIC_ACQUIRE); }

static void open_gate(uint32_t n) {
  uint32_t now = __atomic_load_n(gate.word, __ATOMIC_ACQUIRE);
  while ((int32_t)(now - n) < 0 && !__atomic_compare_exchange_n(gate.word, &now, n, 0, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE)) {
  }
}

// passed reports whether a word has become what a place waits for.
static int passed(const uint32_t *word, uint32_t value) { return (int32_t)(__atomic_load_n(word, __ATOMIC_ACQUIRE) - value) >= 0; }

static struct mark *new_mark(void) { // under lists
  struct mark *m = spare;
  if (m) spare = m->next;
  else if (!(m = calloc(1, sizeof *m)) || D.cuEventCreate(&m->e, 0)) return NULL;
  *m = (struct mark){.e = m->e, .uses = 1};
  return m;
}

static void drop_mark(struct mark *m) { // under lists
  while (m && --m->uses == 0) {
    struct mark *also = m->also;
    drop_mark(m->after);
    m->next = spare;
    spare = m;
    m = also;
  }
}

// place_of is where an event was recorded last.
static struct known *place_of(handle e) { // under lists
  struct known **slot = &known[((uintptr_t)e >> 4) % 1024], *k = *slot;
  while (k && k->e != e) k = k->next;
  if (!k && (k = calloc(1, sizeof *k))) k->e = e, k->next = *slot, *slot = k;
  return k;
}

static struct mark *mark_now(struct lane *l) {
  pthread_mutex_lock(&lists);
  struct mark *m = new_mark();
  if (m && D.cuEventRecord(m->e, l->stream)) {
    drop_mark(m);
    m = NULL;
  }
  pthread_mutex_unlock(&lists);
  return m;
}

static int64_t wall_us(void) { return simccl_wall(); }

static int current_device(void) {
  int d = 0;
  return D.cuCtxGetDevice(&d) ? 0 : d;
}

static int capturing(handle s) {
  int status = 0;
  return D.cuStreamIsCapturing(s, &status) == 0 && status != 0;
}

// lane_of finds a stream, or begins to follow it. Under host.
static struct lane *lane_of(handle s) {
  int dev = current_device();
  if (s == (handle)1) s = NULL;
  for (struct lane *l = lanes; l; l = l->next)
    if (!l->destroyed && l->stream == s && (s || l->dev == dev)) return l;
  struct lane *l = calloc(1, sizeof *l);
  unsigned flags = 0;
  if (!l || words_used == WORDS) return NULL;
  if (s) D.cuStreamGetFlags(s, &flags);
  l->stream = s;
  l->dev = dev;
  l->id = s ? (uint64_t)MARK << 40 | (uint64_t)(flags & 1) << 39 | (uint64_t)dev << 24 | (words_used + 1) : 0;
  l->last = &l->first;
  l->word = words + words_used;
  l->at = words_at + 4 * words_used++;
  int gated = measured() && gate.closed && !capturing(s);
  if (gated) D.cuStreamWaitValue32_v2(s, gate.at, gate.closed, 0);
  if ((l->open = mark_now(l)) && gated) l->open->gate = gate.closed;
  l->opened = simccl_now();
  pthread_mutex_lock(&lists);
  l->next = lanes;
  lanes = l;
  pthread_mutex_unlock(&lists);
  return l;
}

// What the collector has to know, but does not answer, waits for the next request, or for the
// thread that looks. Calls of hosts that run ahead are among it: a host that waits for an answer
// finds its caches cold behind it.
static struct {
  pthread_mutex_t sending; // taken first: what is told first arrives first
  pthread_mutex_t lock;    // of the list
  char *list, *sent;
  size_t n, room, sent_room; // bytes
} backlog = {.sending = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER};
static atomic_int posts; // calls in the backlog
static struct { atomic_int status; char text[900]; } refusal; // of a call in it, for the program's next one
static _Atomic int64_t launch_cost[8]; // ps + 1 that a call of as many communicators takes the host, 0 not known

static struct request take_backlog(void) { // under sending
  pthread_mutex_lock(&backlog.lock);
  char *list = backlog.list;
  size_t room = backlog.room;
  struct request r = {.type = REQ_BACKLOG, .size = (uint32_t)backlog.n};
  backlog.list = backlog.sent, backlog.room = backlog.sent_room, backlog.n = 0;
  backlog.sent = list, backlog.sent_room = room;
  atomic_store(&posts, 0);
  pthread_mutex_unlock(&backlog.lock);
  return r;
}

static void backlog_sent(void) { pthread_mutex_unlock(&backlog.sending); }

static void send_backlog(void) {
  struct reply out;
  char text[sizeof refusal.text];
  pthread_mutex_lock(&backlog.sending);
  struct request r = take_backlog();
  if (r.size > 0) simccl_call(&r, backlog.sent, &out, text, sizeof text);
  if (r.size > 0 && out.status && !atomic_load(&refusal.status)) {
    memcpy(refusal.text, text, sizeof text);
    atomic_store(&refusal.status, out.status);
  }
  pthread_mutex_unlock(&backlog.sending);
}

// add_to_backlog returns whether there is no memory for it.
static int add_to_backlog(const struct request *r, const void *payload, int calls) {
  enum { MUCH = 256 << 10 };
  pthread_mutex_lock(&backlog.lock);
  size_t need = backlog.n + sizeof *r + r->size;
  if (need > backlog.room) {
    char *more = realloc(backlog.list, 2 * need);
    if (!more) return pthread_mutex_unlock(&backlog.lock), 1;
    backlog.list = more;
    backlog.room = 2 * need;
  }
  memcpy(backlog.list + backlog.n, r, sizeof *r);
  if (r->size > 0) memcpy(backlog.list + backlog.n + sizeof *r, payload, r->size);
  backlog.n = need;
  atomic_fetch_add(&posts, calls);
  pthread_mutex_unlock(&backlog.lock);
  if (need > MUCH) send_backlog();
  return 0;
}

static void tell(int type, int64_t a, int64_t b, int64_t c, int64_t d) {
  struct request r = {.type = (uint32_t)type, .now = simccl_now(), .a = {a, b, c, d, 0, simccl_thread()}};
  add_to_backlog(&r, NULL, 0);
}

static int request(int type, int64_t a, int64_t b, int64_t c, int64_t d, struct reply *out) {
  send_backlog();
  struct request r = {.type = (uint32_t)type, .a = {a, b, c, d}};
  return simccl_call(&r, NULL, out, NULL, 0);
}

enum { AT_ONCE = 64 };

// close_lanes ends streams' segments, and begins the next ones at the same places.
static void close_lanes(struct lane **list, int n) {
  struct segment *g[AT_ONCE];
  for (int i = 0; i < n; i++) {
    if (!(g[i] = calloc(1, sizeof *g[i]))) return;
    // Behind an open gate a stream may have ended before; when, the thread that looks knows.
    int idle = measured() && !gate_shut() && D.cuStreamQuery(list[i]->stream) == 0;
    g[i]->id = ++segments;
    g[i]->most = idle ? 0 : -1;
    g[i]->loose = idle || atomic_load(&early);
    tell(REQ_SEGMENT, list[i]->dev, (int64_t)list[i]->id, (int64_t)g[i]->id, list[i]->opened);
  }
  for (int i = 0; i < n; i++) {
    struct lane *l = list[i];
    g[i]->to = mark_now(l);
    pthread_mutex_lock(&lists);
    g[i]->from = l->open;
    if (g[i]->most == 0 && l->busy > l->seen) g[i]->most = l->busy - l->seen;
    l->seen = l->busy = 0;
    l->open = g[i]->to;
    if (g[i]->to) g[i]->to->uses++;
    *l->last = g[i];
    l->last = &g[i]->next;
    pthread_mutex_unlock(&lists);
    l->opened = simccl_now();
  }
}

static void close_lane(struct lane *l) { close_lanes(&l, 1); }

// reopen begins a stream's segment anew, behind what it waits for now: a closing of the gate, its
// word, the place of another stream, as far as that is known. What it waited for where nothing
// runs holds it up, too.
static void reopen(struct lane *l, uint32_t closing, uint32_t value, struct mark *after) {
  struct mark *m = mark_now(l), *old = l->open;
  pthread_mutex_lock(&lists);
  if (m) {
    m->gate = closing ? closing : old ? old->gate : 0;
    if (value) m->word = l->word, m->value = value;
    else if (old) m->word = old->word, m->value = old->value;
    if ((m->after = after)) after->uses++;
    m->also = old && !old->after ? old->also : old;
    if (m->also) m->also->uses++;
  }
  drop_mark(old);
  l->open = m;
  l->due = l->seen = l->busy = 0;
  pthread_mutex_unlock(&lists);
  l->opened = simccl_now();
}

static uint32_t *new_word(uint64_t *at) {
  if (words_used == WORDS) return NULL;
  *at = words_at + 4 * words_used;
  return &words[words_used++];
}

// sign has a stream write that it has come to this place, for others that wait for it. A wait for
// an event of a stream that waits for the cluster keeps its process in the GPU's time slices: 2 ms
// of every 4 that another one computes (testdata/measured/intercept/slices-h200.txt). A wait for a
// word does not. It returns whether others may wait for l->came at l->been_at. Under host.
static int sign(struct lane *l) {
  if (!measured() || atomic_load(&outstanding) == 0) return 0;
  if (!l->been && !(l->been = new_word(&l->been_at))) return 0;
  if (D.cuStreamWriteValue32_v2(l->stream, l->been_at, l->came + 1, 0)) return 0;
  l->came++;
  return 1;
}

static void close_all(int dev) {
  struct lane *list[AT_ONCE];
  int n = 0;
  for (struct lane *l = lanes; l; l = l->next) {
    if (!l->destroyed && (dev < 0 || l->dev == dev) && !capturing(l->stream)) list[n++] = l;
    if (n == AT_ONCE) close_lanes(list, n), n = 0;
  }
  if (n > 0) close_lanes(list, n);
}

static void reopen_all(int dev) {
  for (struct lane *l = lanes; l; l = l->next)
    if (!l->destroyed && (dev < 0 || l->dev == dev) && !capturing(l->stream)) reopen(l, 0, 0, NULL);
}

// --- the thread that looks at segments ---

struct ended { uint64_t id; int64_t ps; };

// A pair of events has a length of its own.
enum { NOTHING_US = 3 };

// When this process had its GPU, in us, the last turns: whether kernels kept to them is checked
// by where segments are on the machine's clock. An event that was seen to have ended has not
// ended later than that; the clocks of the GPU and the machine drift apart by less than 100 ppm.
enum { TURNS = 8 };
static struct { _Atomic int64_t from, to; } had[TURNS];
static atomic_uint turn;
static struct { struct mark *at; int64_t us, set, seen; double ran, astray; } ruler; // under lists
static double tolerated = 10; // % of kernels' time out of turn
static atomic_int strays; // 1: kernels ran while others had the GPU, 2: that was told

// The diary (SIMCCL_TURNS=FILE, for who looks into turns) has a line for each turn, each segment,
// and each call, in us of the machine's clock.
static FILE *diary;
#define NOTE(...) do { if (diary) fprintf(diary, __VA_ARGS__); } while (0)

static void open_diary(void) {
  char name[4096];
  const char *prefix = getenv("SIMCCL_TURNS");
  if (diary || !prefix) return;
  snprintf(name, sizeof name, "%s.%d", prefix, (int)getpid());
  diary = fopen(name, "w");
}

static void turn_begins(void) { // under turns
  unsigned n = atomic_load(&turn) + 1;
  atomic_store(&had[n % TURNS].to, INT64_MAX);
  atomic_store(&had[n % TURNS].from, wall_us());
  atomic_store(&turn, n);
}

static void turn_ends(void) { // under turns
  unsigned n = atomic_load(&turn) % TURNS;
  atomic_store(&had[n].to, wall_us());
  NOTE("T %lld %lld\n", (long long)had[n].from, (long long)had[n].to);
}

// outside is how much of a time was in none of the last turns.
static int64_t outside(int64_t from, int64_t to) {
  int64_t left = to - from;
  for (int i = 0; i < TURNS; i++) {
    int64_t a = atomic_load(&had[i].from), b = atomic_load(&had[i].to);
    a = a > from ? a : from;
    b = b < to ? b : to;
    if (b > a) left -= b - a;
  }
  return left;
}

static void set_ruler(struct mark *at, int64_t us, int64_t now) {
  drop_mark(ruler.at);
  ruler.at = at;
  at->uses++;
  ruler.us = us;
  ruler.set = ruler.seen = now;
}

// strike has the host be held at its calls until it has launched as much again as a program
// that has become calm has, twice as much each time: what begins late may be over.
static void strike(void) {
  enum { FIRST = 1024, MOST = 1 << 20 };
  static int next = FIRST;
  atomic_store(&steady, -next);
  if (next < MOST) next *= 2;
  if (atomic_load(&strays) == 0) atomic_store(&strays, 1);
}

// check_turn is a strike where a tenth of what the GPU did was out of turn: kernels that meet
// those of others take longer than they do alone. Under lists.
static void check_turn(const struct lane *l, const struct segment *g, int64_t took_us) {
  enum { SLACK_US = 300, OFTEN_US = 20000, RESET_US = 10000000, DRIFT = 10000 };
  float ms;
  int64_t now = wall_us();
  if (g->loose || g->begun || g->ended || !g->to || gate.closed == 0 || atomic_load(&calm) < 0) return;
  if (!ruler.at) set_ruler(g->to, now, now);
  if (D.cuEventElapsedTime(&ms, ruler.at->e, g->to->e)) return;
  int64_t end = ruler.us + (int64_t)((double)ms * 1000), late = now - end, most = (now - ruler.seen) / DRIFT;
  if (late > most) late = most;
  ruler.us += late;
  end += late;
  ruler.seen = now;
  if (now - ruler.set > RESET_US) set_ruler(g->to, end, now); // a float of ms holds no more
  int64_t out = outside(end - took_us, end);
  const struct mark *m = g->from;
  NOTE("S %llx %lld %lld %lld %lld %d%d%d%d %lld\n", (unsigned long long)l->id, (long long)(end - took_us), (long long)end, (long long)out, (long long)(now - end),
       m->gate == gate.closed, m->word != NULL, m->after != NULL, m->also != NULL, (long long)g->most);
  ruler.ran += (double)took_us;
  if (out > SLACK_US) ruler.astray += (double)out;
  if (ruler.ran < OFTEN_US) return;
  NOTE("N %lld %.0f of %.0f\n", (long long)now, ruler.astray, ruler.ran);
  if (ruler.astray * 100 > ruler.ran * tolerated) strike();
  ruler.ran = ruler.astray = 0;
}

// collect takes segments that have ended off the lists. Under lists.
static int collect(struct ended *to, int room) {
  int n = 0;
  for (struct lane *l = lanes; l; l = l->next)
    while (l->first && n < room) {
      struct segment *g = l->first;
      error e = g->ended ? (__atomic_load_n(g->ended, __ATOMIC_ACQUIRE) ? 0 : NOT_READY) : g->to ? D.cuEventQuery(g->to->e) : 0;
      if (e == NOT_READY) break;
      float ms = 0;
      if (e == 0 && g->from && g->to && D.cuEventElapsedTime(&ms, g->from->e, g->to->e)) ms = 0;
      if (g->most >= 0 && ms * 1000 > (float)g->most) ms = (float)g->most / 1000;
      if (ms * 1000 > NOTHING_US) {
        l->ran = wall_us();
        if (measured()) check_turn(l, g, (int64_t)(ms * 1000));
      }
      l->due = 0;
      to[n++] = (struct ended){g->id, measured() && ms * 1000 > NOTHING_US ? (int64_t)((double)ms * 1e9) : 0};
      if (!(l->first = g->next)) l->last = &l->first;
      drop_mark(g->from);
      drop_mark(g->to);
      free(g);
    }
  return n;
}

enum { BUSY = 1, IDLE = 2, WAITS = 4, FOLLOWS = 8 };

// outstands reports whether the call of a word in a graph has not been carried out. The graph
// clears the word. Under lists.
static int outstands(const uint32_t *word) {
  const struct ticket *t = tickets;
  while (t && t->word != word) t = t->next;
  return t != NULL;
}

// at_word reports whether a stream waits at a place for a word. Under lists.
static int at_word(const struct mark *m) { return (m->gate && !passed(gate.word, m->gate)) || (m->word && !passed(m->word, m->value)); }

// follows reports whether a stream waits at a place for another stream, whose own state says why
// that does not go on. Under lists.
static int follows(const struct mark *m) {
  while (m && !(m->after && D.cuEventQuery(m->after->e) == NOT_READY)) m = m->also;
  return m != NULL;
}

// about_to is where nothing holds a stream up any more: it goes on in a moment, however long that
// takes. Where nothing is known that has held it up, it is taken to wait for something else
// after some time.
static int about_to(struct lane *l, int known) {
  enum { KNOWN_US = 5000000, UNKNOWN_US = 100000 };
  int64_t now = wall_us();
  if (!l->due) l->due = now;
  return now - l->due < (known ? KNOWN_US : UNKNOWN_US) ? BUSY : WAITS;
}

// state_of is what a stream does. It follows from the words and from where other streams are,
// not from how long it has done nothing: a GPU that others have just used takes its time. Under
// lists.
static int state_of(struct lane *l) {
  const struct segment *g = l->first;
  const struct mark *from = g ? g->from : l->open;
  if (l->destroyed && !g) return 0;
  if (g && g->begun) {
    if (!__atomic_load_n(g->begun, __ATOMIC_ACQUIRE)) return outstands(g->word) ? WAITS : about_to(l, 1);
  } else if (from) {
    if (at_word(from)) return WAITS;
    if (D.cuEventQuery(from->e) == NOT_READY) return follows(from) ? FOLLOWS : about_to(l, from->gate || from->word || from->after || from->also);
  }
  l->due = 0;
  if (g) return BUSY;
  int64_t now = wall_us();
  if (in_capture) return IDLE;
  if (!l->seen) l->seen = now;
  if (D.cuStreamQuery(l->stream) == NOT_READY) return l->ran = l->busy = now, BUSY;
  return l->ran && now - l->ran < 2000000 ? IDLE : 0; // the program may go on with it
}

// give_turn lets others have the GPU: for a stretch of the program, or for the thread that
// looks, which leaves that to a stretch that has begun. It reports whether that may be: not
// where words were written since streams were looked at.
static int give_turn(int stretch, unsigned looked) {
  struct reply out;
  pthread_mutex_lock(&turns);
  int held = atomic_load(&holding), more = held && atomic_load(&releases) != looked;
  int mine = held && !more && (stretch || !atomic_load(&stretching));
  if (mine) {
    turn_ends();
    atomic_store(&holding, 0);
  }
  pthread_mutex_unlock(&turns);
  if (mine) request(REQ_PARKED, looked, 0, 0, 0, &out);
  return !more;
}

// ask_turn is before a stretch, which opens the gate for what is behind the calls so far, too.
static void ask_turn(void) {
  struct reply out;
  pthread_mutex_lock(&turns);
  atomic_fetch_add(&stretching, 1);
  int held = atomic_load(&holding), calls = atomic_load(&outstanding) > 0;
  pthread_mutex_unlock(&turns);
  if (!held || calls) request(REQ_TURN, calls ? (int64_t)issued : 0, !held, 0, 0, &out);
}

// park ends this process's turn when its GPU work waits, or there is none.
static void park(int all, int64_t *since, int64_t now, unsigned looked) {
  enum { WAITING_US = 300, IDLE_US = 3000 };
  if (all & BUSY) {
    *since = 0;
    return;
  }
  if (!*since) *since = now;
  int soon = (all & (WAITS | FOLLOWS) && !(all & IDLE)) || atomic_load(&blocked) > 0;
  if (now - *since < (soon ? WAITING_US : IDLE_US)) return;
  *since = 0;
  give_turn(0, looked);
}

static void alone(void) {
  sigset_t all;
  int relaxed = 2;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, NULL);
  D.cuCtxSetCurrent(context);
  D.cuThreadExchangeStreamCaptureMode(&relaxed);
}

// report tells the collector of segments that have ended, and returns how many.
static int report(struct ended *list, int room) {
  pthread_mutex_lock(&lists);
  int n = collect(list, room);
  pthread_mutex_unlock(&lists);
  if (n == 0) return 0;
  send_backlog();
  struct request r = {.type = REQ_SEGMENT_DONE, .size = (uint32_t)(n * (int)sizeof *list), .a = {n}};
  struct reply out;
  simccl_call(&r, list, &out, NULL, 0);
  int first = 1;
  if (atomic_compare_exchange_strong(&strays, &first, 2)) request(REQ_ASTRAY, 0, 0, 0, 0, &out);
  return n;
}

// states is what all streams do.
static int states(void) {
  int all = 0;
  pthread_mutex_lock(&lists);
  for (struct lane *l = lanes; l; l = l->next) all |= state_of(l);
  pthread_mutex_unlock(&lists);
  return all;
}

// open_early is for a host that waits for kernels behind the gate in a way that is not
// seen (a queue of CUDA's that is full, memory that is freed, a kernel that is loaded): it has
// not called anything for a while. Nobody asks CUDA before the gate is open: it may not answer.
static void open_early(void) {
  enum { QUIET_US = 20000, LONG_US = 20000000 };
  struct timespec t = {0, 20000};
  if (!gate_shut() || pthread_mutex_trylock(&host)) return;
  int64_t begun = wall_us();
  if ((atomic_load(&syncing) || !atomic_load(&throttled)) && begun - atomic_load(&active) > QUIET_US) {
    ask_turn();
    while (!atomic_load(&holding) && live_on() && begun - atomic_load(&active) > QUIET_US && wall_us() - begun < LONG_US) syscall(SYS_nanosleep, &t, NULL);
    if (atomic_load(&holding) && begun - atomic_load(&active) > QUIET_US) {
      atomic_store(&early, 1);
      NOTE("E %lld\n", (long long)wall_us());
      open_gate(gate.closed);
      changed();
    }
    atomic_fetch_sub(&stretching, 1);
  }
  pthread_mutex_unlock(&host);
}

// watch is a thread of its own, which calls nothing of CUDA's that could wait for the gate.
static void *watch(void *unused) {
  struct timespec t = {0, 2000000};
  (void)unused;
  alone();
  for (unsigned n = 1; live_on(); n++) {
    open_early();
    if (diary && n % 128 == 0) fflush(diary);
    syscall(SYS_nanosleep, &t, NULL);
  }
  return NULL;
}

static void *look(void *unused) {
  enum { ROOM = 512, SOON_US = 50, LATE_US = 500, NEVER_US = 5000 };
  struct ended *list = malloc(ROOM * sizeof *list);
  int64_t since = 0, pause = SOON_US;
  (void)unused;
  alone();
  atomic_store(&looking, 1);
  while (list && live_on()) {
    unsigned looked = atomic_load(&releases), seen = atomic_load(&changes);
    int held = atomic_load(&holding) && !atomic_load(&stretching), pending = 0, n = 0;
    // While kernels wait behind the gate nobody asks CUDA about them: the host launches. Those
    // behind calls made before the gate was shut may run then, in turns.
    int launching = measured() && gate_shut() && !held;
    if (launching || atomic_load(&posts) > 0) send_backlog();
    if (!launching) {
      n = report(list, ROOM);
      int all = measured() ? states() : 0;
      if (n > 0) since = 0;
      else if (held) park(all, &since, wall_us(), looked);
      pthread_mutex_lock(&lists);
      for (struct lane *l = lanes; l; l = l->next) pending |= l->first != NULL;
      pthread_mutex_unlock(&lists);
    }
    // Looks come seldom where nothing has ended for a while: many processes may wait so.
    pause = n > 0 || held ? SOON_US : pause + pause / 8 + 1;
    if (pause > LATE_US) pause = LATE_US;
    unchanged(seen, launching ? NEVER_US : pending || held ? pause : LATE_US);
  }
  atomic_store(&looking, 0);
  free(list);
  return NULL;
}

// --- the thread that carries out what the collector asks for ---

static void release(const char *list, int64_t n, int holds) {
  pthread_mutex_lock(&turns);
  if (holds && !atomic_load(&holding)) turn_begins();
  pthread_mutex_lock(&lists);
  for (struct lane *l = lanes; l; l = l->next) l->due = 0; // what is not known may go on now
  for (int64_t i = 0; i < n; i++) {
    uint64_t id;
    memcpy(&id, list + 8 * i, 8);
    for (struct ticket **p = &tickets; *p; p = &(*p)->next) {
      if ((*p)->id != id) continue;
      struct ticket *t = *p;
      *p = t->next;
      if (!passed(t->word, t->value)) __atomic_store_n(t->word, t->value, __ATOMIC_RELEASE); // a later call may have been refused before
      free(t);
      atomic_fetch_sub(&outstanding, 1);
      break;
    }
  }
  pthread_mutex_unlock(&lists);
  if (holds) {
    atomic_fetch_add(&releases, 1);
    atomic_store(&holding, 1);
  }
  pthread_mutex_unlock(&turns);
  changed();
}

// go_on has all streams go on for good.
static void go_on(void) {
  pthread_mutex_lock(&lists);
  for (struct ticket *t = tickets; t; t = t->next) __atomic_store_n(t->word, t->value, __ATOMIC_RELEASE);
  __atomic_store_n(gate.word, UINT32_MAX / 2, __ATOMIC_RELEASE);
  atomic_store(&outstanding, 0);
  pthread_mutex_unlock(&lists);
  changed();
}

// stop is before the driver's end, which takes the words with it.
static void stop(void) {
  if (!atomic_load(&on) || generation != simccl_forked()) return;
  send_backlog();
  go_on();
  atomic_store(&on, 0);
  changed();
  int64_t begun = wall_us();
  struct timespec t = {0, 100000};
  while (atomic_load(&looking) && wall_us() - begun < 1000000) syscall(SYS_nanosleep, &t, NULL);
}

static void *attend(void *unused) {
  enum { ROOM = 64 << 10 };
  char *job = malloc(ROOM);
  char bus[32] = "";
  (void)unused;
  alone();
  D.cuDeviceGetPCIBusId(bus, sizeof bus, current_device());
  int64_t gpu = 1;
  for (char *p = bus; *p; p++) gpu = gpu * 31 + *p;
  while (job && live_on()) {
    struct request r = {.type = REQ_ATTEND, .a = {gpu}};
    struct reply out;
    if (simccl_call(&r, NULL, &out, job, ROOM) || out.status) break;
    if (live_on() && out.a[0] == ACTION_RELEASE) release(job, out.a[1], (int)out.a[2]);
  }
  // Without a collector streams go on: who asks learns of the error.
  if (atomic_load(&on)) go_on();
  free(job);
  return NULL;
}

// --- calls of NCCL ---

static int start(char *why, size_t room) {
  pthread_mutex_lock(&host);
  const char *missing = NULL;
  if (!live_on()) {
    pthread_t t;
    missing = driver_missing();
    if (!missing && (D.cuCtxGetCurrent(&context) || !context)) missing = "a CUDA context of the thread (call cudaSetDevice first)";
    if (!missing && (D.cuMemHostAlloc((void **)&words, 4 * WORDS, 3) || D.cuMemHostGetDevicePointer_v2(&words_at, words, 0))) missing = "host memory that GPUs read";
    if (!missing) {
      memset(words, 0, 4 * WORDS);
      home = current_device();
      gate.word = words;
      gate.at = words_at;
      gate.closed = 0;
      words_used = 1;
      generation = simccl_forked();
      pthread_mutex_init(&backlog.sending, NULL); // of a child of fork, whose parent's calls are the parent's
      pthread_mutex_init(&backlog.lock, NULL);
      backlog.n = 0;
      atomic_store(&posts, 0);
      atomic_store(&refusal.status, 0);
      open_diary();
      if (getenv("SIMCCL_STRAY")) tolerated = atof(getenv("SIMCCL_STRAY"));
      if (getenv("SIMCCL_CALM")) atomic_store(&calm, atoi(getenv("SIMCCL_CALM")));
      atomic_store(&on, 1);
      static int registered; // a child of fork has its parent's functions
      if (!registered && atexit(stop) == 0) registered = 1;
      if (pthread_create(&t, NULL, look, NULL) || pthread_create(&t, NULL, attend, NULL) || (measured() && pthread_create(&t, NULL, watch, NULL))) missing = "a thread";
    }
    if (missing) snprintf(why, room, "real GPUs: %s is not there", missing);
  }
  pthread_mutex_unlock(&host);
  return missing != NULL;
}

// share describes a buffer to other processes.
static int share(struct shared *b, uint64_t at, uint64_t bytes) {
  static struct { uint64_t base, id; struct shared s; } cache[64];
  size_t size;
  uint64_t base, id = 0;
  memset(b, 0, sizeof *b);
  if (!at || !bytes) return 0;
  b->pid = (uint32_t)getpid();
  if (D.cuMemGetAddressRange_v2(&base, &size, at)) return 1;
  D.cuPointerGetAttribute(&id, 7 /* CU_POINTER_ATTRIBUTE_BUFFER_ID */, base);
  size_t slot = (base >> 21 ^ base >> 9) & 63;
  if (id == 0 || cache[slot].base != base || cache[slot].id != id) {
    struct shared s = {.base = base, .size = size, .pid = b->pid};
    s.known = D.cuIpcGetMemHandle(s.handle, base) == 0;
    cache[slot].base = base;
    cache[slot].id = id;
    cache[slot].s = s;
  }
  *b = cache[slot].s;
  b->offset = at - base;
  return b->known && b->offset + bytes <= b->size ? 0 : 1;
}

// Bytes that a call reads and writes, of a rank; ranks is not known here, so the first
// element's address is what is looked at.
static int buffers(const struct op *o, struct shared *to, char *why, size_t room) {
  uint64_t scalar = o->flags & OP_SCALAR_POINTER ? o->scalar : 0;
  uint64_t of[3] = {o->send, o->recv, scalar};
  for (int i = 0; i < 3; i++) {
    if (!share(&to[i], of[i], 1)) continue;
    snprintf(why, room, "the memory at 0x%llx cannot be read by other processes: with --data buffers are of cudaMalloc or ncclMemAlloc (no host memory, no virtual memory management, no pool of a stream; PyTorch: PYTORCH_CUDA_ALLOC_CONF without expandable_segments)",
             (unsigned long long)of[i]);
    return 1;
  }
  return 0;
}

// nap is between two looks at something that another thread or the GPU does: soon at
// first, and later with less of the processor's time.
static void nap(int64_t begun) {
  enum { SPIN_US = 50000 };
  int64_t waited = wall_us() - begun;
  struct timespec t = {0, waited < 2000 ? 5000 : 50000};
  if (simccl_spare() && waited < SPIN_US) simccl_relax();
  else syscall(SYS_nanosleep, &t, NULL);
}

// rest is a nap until the collector says something.
static void rest(unsigned seen, int64_t begun) {
  enum { LOST_US = 5000 }; // the collector may be gone
  if (simccl_spare()) nap(begun);
  else unchanged(seen, LOST_US);
}

// look_later is between two looks at streams: soon at first, later after a part of what was waited.
// Each look is one of CUDA's calls a stream, which a profiler of the program records.
static void look_later(int64_t begun) {
  enum { PART = 16, MOST_US = 50 };
  int64_t now = wall_us(), us = (now - begun) / PART;
  if (us > MOST_US) us = MOST_US;
  do nap(begun);
  while (wall_us() - now < us);
}

// run_out has what may go on on the GPU run until it has ended, or waits for the cluster, and
// lets others have the GPU then.
static void run_out(void) {
  enum { LONG_US = 60000000, SETTLED_US = 30 }; // streams are looked at one after the other: more than once
  struct ended list[64];
  int64_t begun = wall_us(), quiet = 0;
  unsigned looked = atomic_load(&releases);
  for (; live_on(); look_later(begun)) {
    if (atomic_load(&releases) != looked) looked = atomic_load(&releases), quiet = 0;
    int all = report(list, 64) ? BUSY : states();
    int64_t now = wall_us();
    if (all & BUSY) quiet = 0;
    else if (!quiet) quiet = now;
    if (((quiet && now - quiet > SETTLED_US) || now - begun > LONG_US) && give_turn(1, looked)) return;
  }
}

// stretch opens the gate when no other process uses the GPU, and has what was launched run.
// Under host; segments are closed.
static void stretch(void) {
  if (!measured()) return;
  enum { LONG_US = 60000000 };
  atomic_fetch_add(&blocked, 1);
  ask_turn();
  int64_t begun = wall_us();
  for (unsigned seen; seen = atomic_load(&changes), !atomic_load(&holding) && live_on() && wall_us() - begun < LONG_US;) rest(seen, begun);
  open_gate(gate.closed);
  run_out();
  atomic_fetch_sub(&stretching, 1);
  atomic_fetch_sub(&blocked, 1);
}

// shut has what is launched from now on wait for the next stretch.
static void shut(void) {
  if (!measured()) return;
  __atomic_add_fetch(&gate.closed, 1, __ATOMIC_RELEASE);
  for (struct lane *l = lanes; l; l = l->next) {
    if (l->destroyed || capturing(l->stream)) continue;
    D.cuStreamWaitValue32_v2(l->stream, gate.at, gate.closed, 0);
    reopen(l, gate.closed, 0, NULL);
  }
  atomic_store(&launches, 0);
  atomic_store(&early, 0);
  atomic_store(&active, wall_us());
}

// throttle holds the host until its calls have been carried out. Streams share CUDA's
// queues (CUDA_DEVICE_MAX_CONNECTIONS), so that a stream that waits may hold up kernels of
// another one; and the queues are finite, so that a host that waits for room would be taken
// for one that works. A program whose other ranks wait for what this host does next gets on
// after a while, which is shorter each time. Where compute is timed that is now and then (see
// full), since a host that was held finds its caches cold: what is behind the calls runs here
// when the process has the GPU.
static void throttle(void) {
  static int ahead;
  static int64_t patience = 4000000;
  struct ended list[64];
  int left = atomic_load(&outstanding);
  if (left < ahead) ahead = left;
  if (left <= ahead) return;
  if (!measured()) close_all(-1);
  atomic_fetch_add(&blocked, 1);
  if (measured()) atomic_fetch_add(&stretching, 1);
  pthread_mutex_unlock(&host);
  enum { REPORT_US = 200 }; // without its turn nothing of this process ends
  int64_t begun = wall_us(), next = begun;
  atomic_fetch_add(&throttled, 1);
  for (unsigned seen; seen = atomic_load(&changes), live_on() && atomic_load(&outstanding) > ahead && wall_us() - begun < patience;) {
    if (measured() && atomic_load(&holding)) run_out(), next = begun = wall_us();
    else if (measured() && wall_us() >= next && (next = wall_us() + REPORT_US, report(list, 64) > 0)) begun = wall_us();
    else rest(seen, begun);
  }
  atomic_fetch_sub(&throttled, 1);
  pthread_mutex_lock(&host);
  if ((left = atomic_load(&outstanding)) > ahead) {
    ahead = left;
    if (patience > 500000) patience /= 2;
  }
  pthread_mutex_lock(&turns); // the last release is over
  int held = atomic_load(&holding);
  pthread_mutex_unlock(&turns);
  if (measured() && held) run_out();
  if (measured()) atomic_fetch_sub(&stretching, 1);
  atomic_fetch_sub(&blocked, 1);
  atomic_store(&active, wall_us());
  if (!measured()) reopen_all(-1);
}

// count adds to a count, and returns what it was. Where two threads do so at once, or one sets it back,
// either may be lost: a locked addition has the processor wait for all that it has begun.
static int count(atomic_int *of, int more) {
  int n = atomic_load_explicit(of, memory_order_relaxed);
  atomic_store_explicit(of, n + more, memory_order_relaxed);
  return n;
}

// full reports whether the host has launched as much as may wait behind the gate: CUDA's
// queues are finite.
static int full(int more) {
  enum { MOST = 200 };
  count(&steady, more);
  return count(&launches, more) >= MOST || atomic_load(&early) || gate.closed == 0;
}

// flush has everything run that was launched, and the host wait for it. Under host.
static void flush(void) {
  close_all(-1);
  stretch();
  shut();
  throttle();
}

// wait_for has the streams of a communicator's calls wait for a ticket, as NCCL does: the
// last new one waits for the others, and they for it.
static error wait_for(uint32_t value, struct lane **list, int n) {
  struct lane *l = list[n - 1];
  error e = 0;
  for (int i = 0; i < n - 1 && !e; i++) {
    if (sign(list[i])) e = D.cuStreamWaitValue32_v2(l->stream, list[i]->been_at, list[i]->came, 0);
    if (!e) e = D.cuStreamWaitEvent(l->stream, list[i]->open->e, 0);
  }
  if (e || (e = D.cuStreamWaitValue32_v2(l->stream, l->at, value, 0))) return e;
  reopen(l, 0, value, NULL);
  for (int i = 0; i < n - 1 && !e; i++) {
    e = D.cuStreamWaitValue32_v2(list[i]->stream, l->at, value, 0);
    if (!e) e = D.cuStreamWaitEvent(list[i]->stream, l->open->e, 0);
    reopen(list[i], 0, 0, l->open);
  }
  return e;
}

struct part { uint64_t comm; struct lane *list[64]; int n; uint32_t value; };

// add_ticket has a release find what it is for: it may come before the answer to the call.
static int add_ticket(uint32_t *word, uint32_t value) {
  struct ticket *t = malloc(sizeof *t);
  if (!t) return 1;
  pthread_mutex_lock(&lists);
  *t = (struct ticket){++issued, word, value, tickets};
  tickets = t;
  atomic_fetch_add(&outstanding, 1);
  pthread_mutex_unlock(&lists);
  return 0;
}

static void drop_tickets(uint64_t from) {
  pthread_mutex_lock(&lists);
  for (struct ticket **p = &tickets; *p;) {
    struct ticket *t = *p;
    if (t->id < from) {
      p = &t->next;
      continue;
    }
    *p = t->next;
    free(t);
    atomic_fetch_sub(&outstanding, 1);
  }
  pthread_mutex_unlock(&lists);
}

static int fail(struct reply *out, char *text, size_t room, int status, const char *why, error e) {
  memset(out, 0, sizeof *out);
  out->status = status;
  snprintf(text, room, why, e);
  return -1;
}

static __thread int borrowed; // the context is the one that others of this process use

// enter and leave are around what a thread does for us: the clock does not move.
static void enter(void) {
  simccl_worked();
  simccl_freeze();
  pthread_mutex_lock(&host);
  // The runtime gives a thread its context when it needs one; the driver does not.
  handle now = NULL;
  if (!D.cuCtxGetCurrent(&now) && !now) borrowed = D.cuCtxSetCurrent(context) == 0;
}
static void leave(int64_t now) {
  if (borrowed) D.cuCtxSetCurrent(NULL);
  borrowed = 0;
  atomic_store(&active, wall_us());
  pthread_mutex_unlock(&host);
  simccl_thaw(now);
}

// post sends a group's calls; tickets are the first one's number and how many; runs: kernels
// behind them go on when they are carried out, no gate is in between, and the host does not wait
// for an answer where it knows what the call costs: an error is that of the next call.
static int post(struct op *ops, int n, int64_t ticket, int count, int replay, int runs, struct reply *out, char *text, size_t room) {
  enum { COSTS = sizeof launch_cost / sizeof *launch_cost };
  size_t each = sizeof *ops + (simccl_get()->data ? 3 * sizeof(struct shared) : 0);
  char *payload = calloc((size_t)n, each);
  if (!payload) return fail(out, text, room, 2, "out of memory", 0);
  for (int i = 0; i < n; i++) {
    memcpy(payload + (size_t)i * sizeof *ops, &ops[i], sizeof *ops);
    struct shared *to = (struct shared *)(payload + (size_t)n * sizeof *ops) + 3 * i;
    char why[400];
    if (simccl_get()->data && buffers(&ops[i], to, why, sizeof why)) {
      free(payload);
      memset(out, 0, sizeof *out);
      out->status = 1;
      snprintf(text, room, "%s", why);
      return -1;
    }
  }
  struct request r = {.type = REQ_GROUP, .size = (uint32_t)(each * (size_t)n), .now = simccl_now(), .a = {n, 0, ticket, simccl_thread(), replay, runs}};
  int64_t cost = runs && !replay && count < COSTS ? atomic_load(&launch_cost[count]) : 0;
  if (cost > 0 && simccl_connected() && !add_to_backlog(&r, payload, 1)) {
    free(payload);
    *out = (struct reply){.now = r.now + cost - 1};
    changed();
    return 0;
  }
  if (atomic_load(&posts) > 0) send_backlog(); // whose errors are of this call
  pthread_mutex_lock(&backlog.sending); // until it is carried out: what is told later arrives later
  struct request b = take_backlog();
  int res = simccl_call_both(&b, backlog.sent, backlog_sent, &r, payload, out, text, room);
  free(payload);
  if (!res && !out->status && !replay && count < COSTS) atomic_store(&launch_cost[count], out->a[3] + 1);
  return res || out->status ? -1 : 0;
}

// was_refused is where an earlier call of this process, which its host went on at, was refused.
static int was_refused(struct reply *out, char *text, size_t room) {
  int status = atomic_load(&refusal.status);
  if (!status) return 0;
  fail(out, text, room, status, "", 0);
  snprintf(text, room, "%s", refusal.text);
  atomic_store(&refusal.status, 0);
  return 1;
}

static int posted(struct op *ops, int n, struct part *parts, int count, int runs, struct reply *out, char *text, size_t room) {
  uint64_t first = issued + 1;
  for (int i = 0; i < count; i++) {
    struct lane *l = parts[i].list[parts[i].n - 1];
    if (add_ticket(l->word, parts[i].value = ++l->issued)) return drop_tickets(first), fail(out, text, room, 2, "out of memory", 0);
  }
  if (was_refused(out, text, room) || post(ops, n, (int64_t)first, count, 0, runs, out, text, room)) return drop_tickets(first), -1;
  for (int i = 0; i < count; i++) {
    error e = wait_for(parts[i].value, parts[i].list, parts[i].n);
    if (e) return fail(out, text, room, 1, "cuStreamWaitValue32: error %d of CUDA's", e);
  }
  return 0;
}

// --- graphs ---

static void launched(const void *f, handle s);

// A call that was captured: nodes that say that the stream has come, wait for a word,
// clear it, and say that it goes on; CUDA's events before and behind.
struct capture {
  uint64_t id; // of CUDA's capture
  handle graph;
  struct op *ops;
  int n;
  uint32_t *word, *came, *went;
  struct mark before, behind;
  struct capture *next;
};
struct exec { handle exec, graph; struct mark *last; struct exec *next; };
static struct capture *captures, **last_capture = &captures;
static struct exec *execs;

static uint64_t capture_of(handle s) {
  int status = 0;
  uint64_t id = 0;
  return D.cuStreamGetCaptureInfo(s, &status, &id) || status == 0 ? 0 : id; // 2: invalidated
}

// captured puts the nodes of a group into the graph that its streams are captured in.
static int captured(struct op *ops, int n, struct reply *out, char *text, size_t room) {
  handle s = (handle)(uintptr_t)ops[n - 1].stream;
  uint64_t id = capture_of(s), word, came, went;
  struct capture *c = calloc(1, sizeof *c);
  error e = 0;
  for (int i = 0; i < n; i++) {
    if (ops[i].comm != ops[0].comm) return fail(out, text, room, 5, "a group of several communicators in a graph is not built for real GPUs", 0);
    if (capture_of((handle)(uintptr_t)ops[i].stream) != id || !id) return fail(out, text, room, 5, "a group has streams that are captured, and others that are not, or by another graph", 0);
    if (ops[i].stream != ops[0].stream) return fail(out, text, room, 5, "a group on several streams of a graph is not built for real GPUs", 0);
  }
  if (!c || !(c->ops = malloc((size_t)n * sizeof *ops)) || !(c->word = new_word(&word)) || !(c->came = new_word(&came)) || !(c->went = new_word(&went)))
    return fail(out, text, room, 2, "too many calls in graphs", 0);
  memcpy(c->ops, ops, (size_t)n * sizeof *ops);
  c->id = id;
  c->n = n;
  c->before.uses = c->behind.uses = 1 << 30; // never used for anything else
  if ((e = D.cuEventCreate(&c->before.e, 0)) || (e = D.cuEventCreate(&c->behind.e, 0)) || (e = D.cuEventRecordWithFlags(c->before.e, s, 1)) ||
      (e = D.cuStreamWriteValue32_v2(s, came, 1, 0)) || (e = D.cuStreamWaitValue32_v2(s, word, 1, 1)) || (e = D.cuStreamWriteValue32_v2(s, word, 0, 0)) ||
      (e = D.cuEventRecordWithFlags(c->behind.e, s, 1)) || (e = D.cuStreamWriteValue32_v2(s, went, 1, 0)))
    return fail(out, text, room, 1, "a call of NCCL in a graph: error %d of CUDA's", e);
  *last_capture = c;
  last_capture = &c->next;
  memset(out, 0, sizeof *out);
  return 0;
}

// group is ncclGroupEnd: a ticket for each communicator.
static int group(struct op *ops, int n, struct reply *out, char *text, size_t room) {
  int count = 0, res = -1;
  enter();
  int captures = capturing((handle)(uintptr_t)ops[0].stream), apart = measured() && !captures;
  int ahead = apart && runs_ahead();
  NOTE("C %lld %d %d\n", (long long)wall_us(), ahead, atomic_load(&steady));
  // A stream that is seen first here may have work before the call already: it is followed before
  // segments are closed, so that the call comes behind that work.
  for (int i = 0; apart && i < n; i++)
    if (!capturing((handle)(uintptr_t)ops[i].stream)) lane_of((handle)(uintptr_t)ops[i].stream);
  if (apart) close_all(-1);
  if (apart && !ahead) stretch();
  struct part *parts = calloc((size_t)n, sizeof *parts);
  for (int i = 0; parts && i < n; i++) {
    handle s = (handle)(uintptr_t)ops[i].stream;
    if (i == 0 && captures) {
      res = captured(ops, n, out, text, room);
      goto out;
    }
    if (capturing(s)) {
      fail(out, text, room, 5, "a group has streams that are captured, and others that are not", 0);
      goto out;
    }
    struct lane *l = lane_of(s);
    int k = 0, at = 0;
    while (k < count && parts[k].comm != ops[i].comm) k++;
    if (k == count) parts[count++].comm = ops[i].comm;
    struct part *p = &parts[k];
    while (at < p->n && p->list[at] != l) at++;
    if (l && l->dev != home) {
      fail(out, text, room, 5, "a process that uses several GPUs is built for --time record only: start a process a rank", 0);
      goto out;
    }
    if (!l || at == 64) {
      fail(out, text, room, 5, "a group on more than 64 streams, or a process with more than 1024", 0);
      goto out;
    }
    if (at == p->n) p->list[p->n++] = l;
    ops[i].stream = l->id;
    ops[i].flags |= (uint32_t)k << 8;
  }
  if (!parts) {
    fail(out, text, room, 2, "out of memory", 0);
    goto out;
  }
  for (int k = 0; k < count && !apart; k++)
    for (int i = 0; i < parts[k].n; i++) {
      struct lane *l = parts[k].list[i];
      int seen = 0;
      for (int j = 0; j < k; j++)
        for (int h = 0; h < parts[j].n; h++) seen |= parts[j].list[h] == l;
      if (!seen) close_lane(l);
    }
  res = posted(ops, n, parts, count, ahead, out, text, room);
out:
  // Until a program is calm its host may wait for its streams in ways that are not seen, while
  // nobody can ask CUDA about them. A call is four entries of CUDA's queues.
  int queued = apart && full(4);
  if (ahead && queued) flush();
  if (apart && !ahead) shut();
  if (!ahead && !res && !captures) throttle();
  free(parts);
  leave(out->now);
  return res;
}

// told is before the collector is asked about a communicator: its calls come first, also those
// that another thread is about to send.
static void told(void) {
  if (live_on()) send_backlog();
}

PUBLIC const struct live *simccl_live(void) {
  static const struct live functions = {told, start, group};
  return &functions;
}

// --- what the program asks of its CUDA runtime ---

#define REAL(result, name, args)                              \
  static result(*real) args;                                  \
  if (!real && !(real = (result(*) args)runtime(#name))) return 35; // the runtime is not there

static int64_t key(handle e) { return (int64_t)(uintptr_t)e; }

static error recorded(handle e, handle s) {
  enter();
  struct lane *l = lane_of(s);
  if (l) {
    close_lane(l);
    tell(REQ_EVENT_RECORD, l->dev, (int64_t)l->id, key(e), 0);
    int signed_here = sign(l);
    if (signed_here) reopen(l, 0, 0, NULL);
    pthread_mutex_lock(&lists);
    struct known *k = place_of(e);
    if (k) k->word = signed_here ? l->been : NULL, k->at = l->been_at, k->value = l->came;
    if (k && l->open) {
      drop_mark(k->m);
      k->m = l->open;
      k->m->uses++;
    }
    pthread_mutex_unlock(&lists);
  }
  leave(0);
  return 0;
}

PUBLIC error cudaEventRecord(handle e, handle s) {
  REAL(error, cudaEventRecord, (handle, handle))
  if (live_on() && e && !capturing(s)) recorded(e, s);
  return real(e, s);
}

PUBLIC error cudaEventRecordWithFlags(handle e, handle s, unsigned flags) {
  REAL(error, cudaEventRecordWithFlags, (handle, handle, unsigned))
  if (live_on() && e && !capturing(s)) recorded(e, s);
  return real(e, s, flags);
}

PUBLIC error cudaStreamWaitEvent(handle s, handle e, unsigned flags) {
  REAL(error, cudaStreamWaitEvent, (handle, handle, unsigned))
  if (!live_on() || capturing(s)) return real(s, e, flags);
  enter();
  struct lane *l = lane_of(s);
  if (l) {
    close_lane(l);
    tell(REQ_EVENT_WAIT, l->dev, (int64_t)l->id, key(e), 0);
  }
  pthread_mutex_lock(&lists);
  struct known *k = place_of(e);
  int behind = k && k->word && !passed(k->word, k->value);
  pthread_mutex_unlock(&lists);
  if (behind) D.cuStreamWaitValue32_v2(s, k->at, k->value, 0);
  error r = real(s, e, flags);
  if (l) {
    pthread_mutex_lock(&lists);
    struct mark *after = k && k->m && k->m->e ? k->m : NULL;
    if (after) after->uses++;
    pthread_mutex_unlock(&lists);
    reopen(l, 0, 0, after);
    pthread_mutex_lock(&lists);
    drop_mark(after);
    pthread_mutex_unlock(&lists);
  }
  leave(0);
  return r;
}

// A graph's calls are posted when it is launched; before, the launch before has to be over,
// as the words and events are the same.
static int replayed(struct exec *x, struct lane *l) {
  struct reply out;
  char why[400];
  struct timespec t = {0, 20000};
  const uint32_t *begun = NULL, *word = NULL;
  if (x->last && D.cuEventQuery(x->last->e) == NOT_READY) {
    atomic_fetch_add(&blocked, 1);
    while (D.cuEventQuery(x->last->e) == NOT_READY && live_on()) syscall(SYS_nanosleep, &t, NULL);
    atomic_fetch_sub(&blocked, 1);
  }
  close_lane(l);
  for (struct capture *c = captures; c; c = c->next) {
    if (c->graph != x->graph) continue;
    *c->word = *c->came = *c->went = 0;
    struct segment *g = calloc(1, sizeof *g);
    if (!g) return 2;
    *g = (struct segment){.id = ++segments, .to = &c->before, .begun = begun, .ended = c->came, .word = word, .most = -1};
    tell(REQ_SEGMENT, l->dev, (int64_t)l->id, (int64_t)g->id, simccl_now());
    pthread_mutex_lock(&lists);
    g->from = l->open;
    l->open = &c->behind;
    *l->last = g;
    l->last = &g->next;
    pthread_mutex_unlock(&lists);
    begun = c->went;
    word = c->word;
    for (int i = 0; i < c->n; i++) c->ops[i].stream = l->id;
    if (add_ticket(c->word, 1) || post(c->ops, c->n, (int64_t)issued, 1, 1, 1, &out, why, sizeof why)) return 719;
  }
  return 0;
}

// behind_graph ends the last segment of a graph.
static void behind_graph(struct exec *x, struct lane *l) {
  struct segment *g = calloc(1, sizeof *g);
  struct capture *last = NULL;
  for (struct capture *c = captures; c; c = c->next)
    if (c->graph == x->graph) last = c;
  if (!g) return;
  *g = (struct segment){.id = ++segments, .begun = last->went, .word = last->word, .most = -1};
  tell(REQ_SEGMENT, l->dev, (int64_t)l->id, (int64_t)g->id, simccl_now());
  g->to = mark_now(l);
  pthread_mutex_lock(&lists);
  g->from = l->open;
  l->open = g->to;
  if (g->to) g->to->uses += 2;
  drop_mark(x->last);
  x->last = g->to;
  *l->last = g;
  l->last = &g->next;
  l->seen = l->busy = 0;
  pthread_mutex_unlock(&lists);
  l->opened = simccl_now();
}

PUBLIC error cudaGraphLaunch(handle exec, handle s) {
  REAL(error, cudaGraphLaunch, (handle, handle))
  struct exec *x = execs;
  while (x && x->exec != exec) x = x->next;
  if (!live_on() || !x || capturing(s)) {
    launched(NULL, s);
    return real(exec, s);
  }
  enter();
  struct lane *l = lane_of(s);
  if (measured()) flush(); // what was launched before runs before, and the graph in stretches of its own
  error e = l ? replayed(x, l) : 2;
  if (!e) e = real(exec, s);
  if (!e) behind_graph(x, l);
  stretch();
  shut();
  leave(0);
  return e;
}

static void captures_now(int change) {
  pthread_mutex_lock(&lists);
  in_capture += change;
  pthread_mutex_unlock(&lists);
}

PUBLIC error cudaStreamBeginCapture(handle s, int mode) {
  REAL(error, cudaStreamBeginCapture, (handle, int))
  if (!live_on()) return real(s, mode);
  captures_now(1);
  error e = real(s, mode);
  if (e) captures_now(-1);
  return e;
}

PUBLIC error cudaStreamEndCapture(handle s, handle *graph) {
  REAL(error, cudaStreamEndCapture, (handle, handle *))
  uint64_t id = live_on() ? capture_of(s) : 0;
  error e = real(s, graph);
  if (id) captures_now(-1);
  for (struct capture *c = captures; c && id && !e; c = c->next)
    if (c->id == id && !c->graph) c->graph = *graph;
  return e;
}

static void instantiated(handle exec, handle graph) {
  struct capture *c = captures;
  while (c && c->graph != graph) c = c->next;
  struct exec *x = c ? calloc(1, sizeof *x) : NULL;
  if (!x) return;
  pthread_mutex_lock(&host);
  *x = (struct exec){exec, graph, NULL, execs};
  execs = x;
  pthread_mutex_unlock(&host);
}

PUBLIC error cudaGraphInstantiate(handle *exec, handle graph, handle a, handle b, size_t n) {
  REAL(error, cudaGraphInstantiate, (handle *, handle, handle, handle, size_t))
  error e = real(exec, graph, a, b, n);
  if (!e) instantiated(*exec, graph);
  return e;
}

PUBLIC error cudaGraphInstantiateWithFlags(handle *exec, handle graph, unsigned long long flags) {
  REAL(error, cudaGraphInstantiateWithFlags, (handle *, handle, unsigned long long))
  error e = real(exec, graph, flags);
  if (!e) instantiated(*exec, graph);
  return e;
}

// awaited is around a call that blocks: streams are cut before, and the host's clock goes
// on at when they are done.
static void awaited(handle s, int all, int *dev, struct lane **l) {
  enter();
  *dev = current_device();
  *l = all ? NULL : lane_of(s);
  if (all || measured()) close_all(measured() ? -1 : *dev);
  else if (*l) close_lane(*l);
  stretch();
  if (measured()) throttle();
  atomic_fetch_add(&syncing, 1);
  atomic_fetch_add(&blocked, 1);
  if (borrowed) D.cuCtxSetCurrent(NULL);
  pthread_mutex_unlock(&host);
}

static void resumed(int dev, struct lane *l, int type, int64_t what, int64_t more) {
  struct reply out = {0};
  request(type, what, more, 0, 0, &out);
  atomic_fetch_sub(&blocked, 1);
  pthread_mutex_lock(&host);
  if (borrowed) D.cuCtxSetCurrent(context);
  atomic_fetch_sub(&syncing, 1);
  if (measured()) shut();
  else if (l) reopen(l, 0, 0, NULL);
  else reopen_all(dev);
  leave(out.now);
}

// --- launches, where compute is timed ---

// cut ends a stretch where the host calls nothing that ends it: CUDA's queues are finite.
static void cut(void) {
  enter();
  flush();
  leave(0);
}

// new_kernel reports whether a kernel is launched for the first time: CUDA loads it then, and
// may wait for all streams.
static int new_kernel(const void *f) {
  enum { KERNELS = 8192 };
  static _Atomic(const void *) seen[KERNELS];
  size_t at = ((uintptr_t)f >> 4) * 2654435761u % KERNELS;
  for (int i = 0; f && i < KERNELS; i++, at = (at + 1) % KERNELS) {
    const void *was = atomic_load_explicit(&seen[at], memory_order_relaxed);
    if (!was && atomic_compare_exchange_strong(&seen[at], &was, f)) return 1;
    if (was == f) return 0;
  }
  return 0;
}

// Streams that are followed: kernels on others would not wait for the gate.
enum { FOLLOWED = 256 };
static _Atomic(handle) followed[FOLLOWED];

static size_t slot_of(handle s) { return ((uintptr_t)s >> 4) * 2654435761u % FOLLOWED; }

static void follow(handle s) {
  if (s && atomic_load(&followed[slot_of(s)]) == s) return;
  static atomic_int null;
  if (!s && atomic_exchange(&null, 1)) return;
  enter();
  lane_of(s);
  atomic_store(&followed[slot_of(s)], s);
  leave(0);
}

static void unfollow(handle s) {
  if (atomic_load(&followed[slot_of(s)]) == s) atomic_store(&followed[slot_of(s)], NULL);
}

// stirred is before the program loads a kernel or asks for memory.
static void stirred(void) {
  int now = atomic_load(&steady);
  while (now > 0 && !atomic_compare_exchange_weak(&steady, &now, 0)) {
  }
}

// just_now reports whether the clock was read a moment ago, 100 us at most: processors' counters of
// x86 tick at 1 GHz or more. Reading the clock at each launch took a host 0.2 to 0.4 us of its 4 to 8.
static int just_now(void) {
#if defined __x86_64__
  enum { MOMENT = 100000 };
  static _Atomic uint64_t last;
  uint64_t now = __builtin_ia32_rdtsc();
  if (now - atomic_load_explicit(&last, memory_order_relaxed) < MOMENT) return 1;
  atomic_store_explicit(&last, now, memory_order_relaxed);
#endif
  return 0;
}

// launched is before each launch that is seen; those of libraries of CUDA's are not. What the
// host has launched in a while is a segment of its own, since it begins when it was launched.
static void launched(const void *f, handle s) {
  enum { SLICE_PS = 1000000000 };
  if (!live_on() || !measured() || gate.closed == 0) return;
  int moment = just_now();
  if (!moment) atomic_store(&active, wall_us());
  if (in_capture && capturing(s)) return;
  follow(s);
  int load = new_kernel(f);
  if (load) {
    stirred();
    NOTE("K %lld\n", (long long)wall_us());
  }
  if (full(1) || (load && atomic_load(&outstanding) > 0)) {
    cut();
    return;
  }
  if (moment) return;
  static _Atomic int64_t last;
  int64_t now = simccl_now();
  if (now - atomic_load(&last) < SLICE_PS) return;
  atomic_store(&last, now);
  enter();
  struct lane *l = lane_of(s);
  if (l) close_lane(l);
  leave(0);
}

struct dim3 { unsigned x, y, z; };

PUBLIC error cudaLaunchKernel(const void *f, struct dim3 grid, struct dim3 block, void **args, size_t shared, handle s) {
  REAL(error, cudaLaunchKernel, (const void *, struct dim3, struct dim3, void **, size_t, handle))
  launched(f, s);
  return real(f, grid, block, args, shared, s);
}

// What programs of later compilers of CUDA's call.
PUBLIC error __cudaLaunchKernel(const void *f, struct dim3 grid, struct dim3 block, void **args, size_t shared, handle s) {
  REAL(error, __cudaLaunchKernel, (const void *, struct dim3, struct dim3, void **, size_t, handle))
  launched(f, s);
  return real(f, grid, block, args, shared, s);
}

struct launch { struct dim3 grid, block; size_t shared; handle stream; }; // the first fields of CUDA's
PUBLIC error cudaLaunchKernelExC(const struct launch *how, const void *f, void **args) {
  REAL(error, cudaLaunchKernelExC, (const struct launch *, const void *, void **))
  if (how) launched(f, how->stream);
  return real(how, f, args);
}

PUBLIC error cudaStreamSynchronize(handle s) {
  REAL(error, cudaStreamSynchronize, (handle))
  if (!live_on() || capturing(s)) return real(s);
  int dev;
  struct lane *l;
  awaited(s, 0, &dev, &l);
  error e = real(s);
  resumed(dev, l, REQ_SYNC, dev, l ? (int64_t)l->id : 0);
  return e;
}

// polled reports whether a thread asks for the same thing again and again and does nothing
// else: it waits. Others ask now and then.
static int polled(handle what) {
  enum { SOON_US = 1000, PATIENT = 20 };
  static __thread handle last;
  static __thread int times;
  static __thread int64_t at, then;
  int64_t now = wall_us(), did = atomic_load(&active);
  if (what != last || now - at > SOON_US || did != then) times = 0;
  last = what;
  at = now;
  then = did;
  return ++times > PATIENT;
}

PUBLIC error cudaStreamQuery(handle s) {
  REAL(error, cudaStreamQuery, (handle))
  error e = real(s);
  if (e != NOT_READY || !live_on() || !measured() || in_capture || !gate_shut() || !polled(s)) return e;
  int dev;
  struct lane *l;
  awaited(s, 0, &dev, &l);
  e = real(s);
  resumed(dev, l, REQ_SYNC, dev, l ? (int64_t)l->id : 0);
  return e;
}

PUBLIC error cudaEventQuery(handle e) {
  REAL(error, cudaEventQuery, (handle))
  error r = real(e);
  if (r != NOT_READY || !live_on() || !measured() || in_capture || !gate_shut() || !polled(e)) return r;
  int dev;
  struct lane *l;
  awaited(NULL, 1, &dev, &l);
  r = real(e);
  resumed(dev, NULL, REQ_EVENT_SYNC, key(e), 0);
  return r;
}

void simccl_stream_gone(handle s) {
  if (!live_on() || !s) return;
  pthread_mutex_lock(&host);
  pthread_mutex_lock(&lists);
  for (struct lane *l = lanes; l; l = l->next) l->destroyed |= l->stream == s;
  pthread_mutex_unlock(&lists);
  unfollow(s);
  pthread_mutex_unlock(&host);
}

void simccl_context_gone(handle c) {
  if (!c || c == context) stop();
}

PUBLIC error cudaStreamDestroy(handle s) {
  REAL(error, cudaStreamDestroy, (handle))
  simccl_stream_gone(s);
  return real(s);
}

PUBLIC error cudaDeviceSynchronize(void) {
  REAL(error, cudaDeviceSynchronize, (void))
  if (!live_on()) return real();
  int dev;
  struct lane *l;
  awaited(NULL, 1, &dev, &l);
  error e = real();
  resumed(dev, NULL, REQ_SYNC, dev, -1);
  return e;
}

PUBLIC error cudaEventSynchronize(handle e) {
  REAL(error, cudaEventSynchronize, (handle))
  if (!live_on()) return real(e);
  int dev;
  struct lane *l;
  awaited(NULL, 1, &dev, &l);
  error r = real(e);
  resumed(dev, NULL, REQ_EVENT_SYNC, key(e), 0);
  return r;
}

// pageable reports whether a copy reads or writes memory of the host that CUDA does not know:
// such a copy may wait for its stream.
static int pageable(const void *to, const void *from, int kind) {
  uint32_t type = 0;
  if (kind == 1 || kind == 2) return D.cuPointerGetAttribute(&type, 2 /* CU_POINTER_ATTRIBUTE_MEMORY_TYPE */, (uint64_t)(uintptr_t)(kind == 1 ? from : to)) != 0;
  return kind == 4 && (pageable(to, from, 1) || pageable(to, from, 2));
}

PUBLIC error cudaMemcpyAsync(void *to, const void *from, size_t n, int kind, handle s) {
  REAL(error, cudaMemcpyAsync, (void *, const void *, size_t, int, handle))
  if (!live_on() || !measured() || (in_capture && capturing(s))) return real(to, from, n, kind, s);
  if (!pageable(to, from, kind)) {
    launched(NULL, s);
    return real(to, from, n, kind, s);
  }
  cut();
  enter();
  NOTE("P %lld %zu\n", (long long)wall_us(), n);
  open_gate(gate.closed);
  error e = real(to, from, n, kind, s);
  flush();
  leave(0);
  return e;
}

PUBLIC error cudaFree(void *p) {
  REAL(error, cudaFree, (void *))
  if (!live_on() || !measured() || in_capture || !p) return real(p);
  stirred();
  NOTE("F %lld\n", (long long)wall_us());
  int dev;
  struct lane *l;
  awaited(NULL, 1, &dev, &l);
  error e = real(p);
  resumed(dev, NULL, REQ_SYNC, dev, -1);
  return e;
}

PUBLIC error cudaMalloc(void **p, size_t n) {
  REAL(error, cudaMalloc, (void **, size_t))
  if (!live_on() || !measured() || in_capture) return real(p, n);
  stirred();
  NOTE("M %lld %zu\n", (long long)wall_us(), n);
  enter();
  close_all(-1);
  stretch();
  throttle();
  error e = real(p, n);
  shut();
  leave(0);
  return e;
}

PUBLIC error cudaMemcpy(void *to, const void *from, size_t n, int kind) {
  REAL(error, cudaMemcpy, (void *, const void *, size_t, int))
  if (!live_on() || capturing(NULL)) return real(to, from, n, kind);
  int dev;
  struct lane *l;
  awaited(NULL, 0, &dev, &l);
  error e = real(to, from, n, kind);
  resumed(dev, l, REQ_SYNC, dev, 0);
  return e;
}

// Times between events are those of the virtual cluster where streams were followed when
// they were recorded.
static error elapsed(float *ms, handle a, handle b, error (*real)(float *, handle, handle)) {
  error e = real(ms, a, b);
  if (e || !live_on()) return e;
  simccl_freeze();
  struct reply out;
  struct timespec t = {0, 100000};
  for (int i = 0; i < 50000; i++) { // segments that have ended may not be reported yet
    if (request(REQ_ELAPSED, key(a), key(b), 0, 0, &out) || out.status != NOT_READY) break;
    syscall(SYS_nanosleep, &t, NULL);
  }
  if (out.status == 0) *ms = (float)((double)out.a[0] * 1e-9);
  simccl_thaw(0);
  return 0;
}

PUBLIC error cudaEventElapsedTime(float *ms, handle a, handle b) {
  REAL(error, cudaEventElapsedTime, (float *, handle, handle))
  return elapsed(ms, a, b, real);
}

PUBLIC error cudaEventElapsedTime_v2(float *ms, handle a, handle b) {
  REAL(error, cudaEventElapsedTime_v2, (float *, handle, handle))
  return elapsed(ms, a, b, real);
}
