/* The random program's work on the GPU, its short-lived threads, and its forks. */
#define _GNU_SOURCE
#include "chaos.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BURST_KERNELS = 40, GRAPH_KERNELS = 3, GRAPH_KERNEL_NS = 50000, GRAPH_BYTES = 4 << 20, COPY_BYTES = 4096 };

/* The time limit of a forked process, after which it counts as hanging. */
enum { CHILD_SECONDS = 20 };

#define CALLED(operation, wait, call) (chaos_enter(worker, operation), chaos_leave(worker, wait, call))

static CUresult launch(struct worker *worker, int operation, CUstream stream, uint64_t ns) {
  const struct driver *driver = &worker->chaos->driver;
  void *parameters[] = {&ns};
  return CALLED(operation, WAIT_LAUNCH,
                driver->launch(driver->spin_kernel, 1 + (unsigned)(ns % 4000), 1, 1, 32, 1, 1, 0, stream, parameters,
                               NULL));
}

static CUresult burst(struct worker *worker) {
  const struct driver *driver = &worker->chaos->driver;
  CUresult result = CUDA_SUCCESS;
  for (int i = 0; i < BURST_KERNELS && result == CUDA_SUCCESS; i++) {
    result = CALLED(BURST, WAIT_LAUNCH, driver->launch(driver->null_kernel, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
  }
  return result;
}

static CUresult per_thread(struct worker *worker) {
  struct chaos *chaos = worker->chaos;
  uint64_t ns = 20000 + random_next(&worker->random) % 100000;
  void *parameters[] = {&ns};
  if (chaos->launch_thread == NULL) {
    return CUDA_SUCCESS;
  }
  return CALLED(PER_THREAD, WAIT_LAUNCH,
                chaos->launch_thread(chaos->driver.spin_kernel, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL));
}

/* Captures kernels, and in some graphs memory of their own. Returns the first error. */
static CUresult capture(struct worker *worker, CUgraph *graph) {
  struct chaos *chaos = worker->chaos;
  CUresult launched = CUDA_SUCCESS;
  CUresult result = CALLED(GRAPH, WAIT_MEMORY, chaos->begin_capture(worker->stream, 2));
  if (result != CUDA_SUCCESS) {
    return result;
  }
  CUdeviceptr own = 0;
  bool allocates = chaos->async != NULL && chaos->free_async != NULL && random_next(&worker->random) % 3 == 0;
  if (allocates) {
    launched = CALLED(GRAPH, WAIT_MEMORY,
                      chaos->async(&own, 1 + random_next(&worker->random) % GRAPH_BYTES, worker->stream));
  }
  for (int i = 0; i < GRAPH_KERNELS && launched == CUDA_SUCCESS; i++) {
    launched = launch(worker, GRAPH, worker->stream, GRAPH_KERNEL_NS);
  }
  if (allocates && launched == CUDA_SUCCESS) {
    launched = CALLED(GRAPH, WAIT_MEMORY, chaos->free_async(own, worker->stream));
  }
  result = CALLED(GRAPH, WAIT_MEMORY, chaos->end_capture(worker->stream, graph));
  return launched != CUDA_SUCCESS ? launched : result;
}

static CUresult build_graph(struct worker *worker) {
  struct chaos *chaos = worker->chaos;
  CUgraph graph = NULL;
  pthread_rwlock_rdlock(&chaos->capturing);
  CUresult result = capture(worker, &graph);
  pthread_rwlock_unlock(&chaos->capturing);
  if (result == CUDA_SUCCESS) {
    result = CALLED(GRAPH, WAIT_MEMORY, chaos->instantiate(&worker->graph, graph, 0));
  }
  if (graph != NULL) {
    CALLED(GRAPH, WAIT_MEMORY, chaos->graph_destroy(graph));
  }
  return result;
}

static CUresult run_graph(struct worker *worker) {
  struct chaos *chaos = worker->chaos;
  if (chaos->begin_capture == NULL || chaos->instantiate == NULL || chaos->graph_launch == NULL || worker->borrowed) {
    return CUDA_SUCCESS;
  }
  bool builds = worker->graph == NULL && worker->tenant != GUEST; /* a graph would outlive the guest lease */
  CUresult result = builds ? build_graph(worker) : CUDA_SUCCESS;
  if (result != CUDA_SUCCESS || worker->graph == NULL) {
    return result;
  }
  result = CALLED(GRAPH, WAIT_LAUNCH, chaos->graph_launch(worker->graph, worker->stream));
  if (random_next(&worker->random) % 8 == 0) {
    CALLED(GRAPH, WAIT_SYNC, chaos->exec_destroy(worker->graph)); /* possibly while it runs */
    worker->graph = NULL;
  }
  return result;
}

static CUresult copy(struct worker *worker) {
  static const char bytes[COPY_BYTES];
  struct chaos *chaos = worker->chaos;
  for (size_t i = 0; i < worker->held_count; i++) {
    const struct held *held = &worker->held[i];
    if (held->kind == PLAIN && held->size >= COPY_BYTES) {
      CUresult result = CALLED(COPY, WAIT_LAUNCH, chaos->copy_in(held->key, bytes, COPY_BYTES, worker->stream));
      return result != CUDA_SUCCESS ? result
                                    : CALLED(COPY, WAIT_LAUNCH, chaos->set8(held->key, 7, COPY_BYTES, worker->stream));
    }
  }
  return CUDA_SUCCESS;
}

static CUresult query(struct worker *worker) {
  CUresult result = CALLED(QUERY, WAIT_MEMORY, worker->chaos->stream_query(worker->stream));
  return result == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : result;
}

/* A program must see its quota as the total, and no more free memory than that. */
static CUresult info(struct worker *worker) {
  size_t free_bytes = 0;
  size_t total = 0;
  CUresult result = CALLED(INFO, WAIT_MEMORY, worker->chaos->driver.memory_info(&free_bytes, &total));
  return result == CUDA_SUCCESS && (free_bytes > total || total != worker->chaos->tenants[worker->tenant].quota)
             ? -1
             : result;
}

static CUresult event(struct worker *worker) {
  struct chaos *chaos = worker->chaos;
  CUevent event = NULL;
  CUresult result = CALLED(EVENT, WAIT_MEMORY, chaos->driver.event_create(&event, 0));
  if (result == CUDA_SUCCESS) {
    result = CALLED(EVENT, WAIT_LAUNCH, chaos->driver.event_record(event, worker->stream));
    if (random_next(&worker->random) % 2 == 0) {
      CUresult waited = CALLED(EVENT, WAIT_SYNC, chaos->driver.event_synchronize(event));
      result = result != CUDA_SUCCESS ? result : waited;
    }
    CALLED(EVENT, WAIT_MEMORY, chaos->event_destroy(event));
  }
  return result;
}

void chaos_work(struct worker *worker, int operation) {
  struct chaos *chaos = worker->chaos;
  CUresult result = CUDA_SUCCESS;
  switch (operation) {
    case SPIN: result = launch(worker, SPIN, worker->stream, 10000 + random_next(&worker->random) % 300000); break;
    case BURST: result = burst(worker); break;
    case PER_THREAD: result = per_thread(worker); break;
    case GRAPH: result = run_graph(worker); break;
    case COPY: result = copy(worker); break;
    case SYNC: result = CALLED(SYNC, WAIT_SYNC, chaos->stream_wait(worker->stream)); break;
    case QUERY: result = query(worker); break;
    case INFO: result = info(worker); break;
    default: result = event(worker); break;
  }
  chaos_accept(worker, operation, result);
}

/* ---- short-lived threads ---- */

static void *come_and_go(void *argument) {
  struct worker *worker = argument;
  struct driver *driver = &worker->chaos->driver;
  CUdeviceptr pointer = 0;
  if (driver->context_set(driver->context) != CUDA_SUCCESS) {
    return NULL;
  }
  CUresult result = CALLED(THREAD, WAIT_MEMORY, driver->memory_alloc(&pointer, 4096));
  chaos_work(worker, PER_THREAD);
  if (chaos_accept(worker, THREAD, result)) {
    chaos_accept(worker, THREAD, CALLED(THREAD, WAIT_SYNC, driver->memory_free(pointer)));
  }
  return NULL; /* work of its per-thread stream is still in flight */
}

void chaos_thread(struct worker *worker) {
  struct worker other = {.chaos = worker->chaos, .random = random_next(&worker->random) | 1, .borrowed = true};
  pthread_t thread;
  if (pthread_create(&thread, NULL, come_and_go, &other) != 0) {
    return;
  }
  pthread_join(thread, NULL);
  for (int wait = 0; wait < WAITS; wait++) {
    if (other.worst_ns[wait] > worker->worst_ns[wait]) {
      worker->worst_ns[wait] = other.worst_ns[wait];
      worker->worst_operation[wait] = THREAD;
    }
  }
}

/* ---- forks ---- */

/* In the child, which must not use its parent's GPU objects. Initialises anew, as a library in the child might. */
static void start_over(const struct chaos *chaos) {
  CUcontext context = NULL;
  CUdeviceptr pointer = 0;
  if (chaos->driver.init(0) == CUDA_SUCCESS && chaos->driver.context_create(&context, 0, 0) == CUDA_SUCCESS &&
      chaos->driver.memory_alloc(&pointer, 1 << 20) == CUDA_SUCCESS) {
    uint64_t ns = 20000;
    spin(&chaos->driver, ns); /* the function belongs to the parent: any result is accepted */
  }
}

static void child(struct chaos *chaos, unsigned what) {
  int nowhere = open("/dev/null", O_RDWR);
  signal(SIGALRM, SIG_DFL);
  alarm(CHILD_SECONDS);
  dup2(nowhere, STDOUT_FILENO);
  dup2(nowhere, STDIN_FILENO);
  if (what == 0) {
    _exit(0);
  }
  if (what == 1) {
    execl("/proc/self/exe", "gpu_program", "init", (char *)NULL);
    _exit(0);
  }
  start_over(chaos);
  if (what == 3) { /* outlives the parent's next actions, and perhaps the parent */
    nanosleep(&(struct timespec){1, 0}, NULL);
  }
  _exit(0);
}

static void reap(struct worker *worker, int flags) {
  int status = 0;
  pid_t ended = waitpid(worker->child, &status, flags);
  if (ended == 0) {
    return;
  }
  worker->child = 0;
  if (ended > 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
    atomic_fetch_add(&worker->chaos->forked_hung, 1);
  }
}

void chaos_fork(struct worker *worker) {
  unsigned what = (unsigned)(random_next(&worker->random) % 4);
  if (worker->child != 0) {
    reap(worker, WNOHANG);
  }
  if (worker->child != 0 || !worker->chaos->forks) {
    return;
  }
  pid_t forked = fork();
  if (forked == 0) {
    child(worker->chaos, what);
  }
  worker->child = forked > 0 ? forked : 0;
  atomic_fetch_add(&worker->chaos->forked, forked > 0);
}
