// The parts of the shim that libnccl and the CUDA runtime of a machine without
// GPUs share: the connection of a thread to the collector, its virtual clock, and
// the record that a program writes of its calls.
#ifndef SIMCCL_SHIM_H
#define SIMCCL_SHIM_H

#include <stddef.h>
#include <stdint.h>

#define PUBLIC __attribute__((visibility("default")))

// Values of struct simccl_settings.
enum { TIME_RECORD, TIME_VIRTUAL, TIME_MEASURED, TIME_PACED };
enum { DEVICES_REAL, DEVICES_VIRTUAL, DEVICES_NONE };

// Requests; intercept/collector/wire.go has the same numbers.
enum {
  REQ_HELLO = 1, REQ_INIT, REQ_WAIT_INIT, REQ_STATE, REQ_SPLIT, REQ_SHRINK, REQ_GROUP, REQ_LEAVE, REQ_SYNC_COMM,
  REQ_STREAM_NEW = 20, REQ_STREAM_END, REQ_SYNC, REQ_QUERY, REQ_EVENT_RECORD, REQ_EVENT_WAIT, REQ_EVENT_SYNC, REQ_EVENT_QUERY,
  REQ_ELAPSED, REQ_COPY, REQ_SET, REQ_FUNCTION, REQ_FUNCTION_DONE, REQ_KERNEL, REQ_CAPTURE, REQ_CAPTURE_END, REQ_GRAPH, REQ_CAPTURING,
  REQ_BYE = 60
};

struct request {
  uint32_t size; // of what follows
  uint32_t type;
  int64_t now; // the thread's clock, ps
  int64_t a[6];
};

struct reply {
  uint32_t size; // of the text that follows
  int32_t status;
  int64_t now;
  int64_t a[4];
};

// STATUS_FUNCTION: a host function has to run before the request can go on.
enum { STATUS_FUNCTION = 1000, STATUS_LOST = 1001 };

// An operation, in requests and in the record. 96 bytes.
struct op {
  uint64_t comm;   // handle
  uint64_t stream;
  uint64_t count;
  uint64_t send, recv;
  uint64_t scalar; // of PreMulSum
  int64_t time;    // ns, of the record
  uint32_t group, thread;
  int16_t func, type;
  int32_t redop, root, dev;
  uint32_t flags;
  uint32_t zero[3];
};
enum { OP_IN_PLACE = 1, OP_REGISTERED = 2, OP_WINDOW = 4, OP_SCALAR_POINTER = 8 };

struct simccl_settings {
  int time, devices, data, count; // count: devices of the virtual machine
  int sm;                         // compute capability, 90
  long long memory;               // bytes of a device
  int live;                       // real devices take part (live.c)
};

PUBLIC int simccl_attach(void);                      // 0, or an errno; idempotent
PUBLIC const struct simccl_settings *simccl_get(void);
PUBLIC int simccl_call(struct request *r, const void *payload, struct reply *out, char *text, size_t room);
// Two requests, of which the first one's answer says nothing, in the time of one; done is called
// once the first one is carried out, or cannot be.
PUBLIC int simccl_call_both(struct request *first, const void *before, void (*done)(void), struct request *r, const void *payload, struct reply *out, char *text, size_t room);
PUBLIC int simccl_connected(void);                   // the collector knows this thread
PUBLIC int simccl_forked(void);                      // how often this process is a child of fork
PUBLIC void simccl_worked(void);                     // the thread has a clock of its own from now on
PUBLIC void simccl_record(const struct op *ops, int n);
PUBLIC uint32_t simccl_group(void);                  // a number, unique in the process
PUBLIC uint32_t simccl_thread(void);
PUBLIC int64_t simccl_now(void);                     // ps
PUBLIC int64_t simccl_wall(void);                    // us of the machine's clock
PUBLIC void simccl_relax(void);                      // a moment of a thread that waits so
PUBLIC int simccl_spare(void);                       // there are processors to wait on without sleeping
PUBLIC void simccl_freeze(void);                     // what the thread does until simccl_thaw is not the program's
PUBLIC void simccl_thaw(int64_t now);                // the clock goes on, at now where that is later
PUBLIC int *simccl_device(void);                     // the thread's device, of whichever CUDA runtime it uses
PUBLIC int simccl_lost(void);                        // the collector is no longer there

#endif
