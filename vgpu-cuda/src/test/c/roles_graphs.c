/* Roles that launch graphs, and capture: test_work.c. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cuda_calls.h"
#include "roles_work.h"
#include "stub_driver.h"
#include "test.h"

/* A graph's time is measured separately: the kernels beside it do not count as long, nor the graph as short. */
void role_graphs(const char *unused) {
  (void)unused;
  CUstream stream = NULL;
  work_begin();
  CHECK(cuStreamCreate(&stream, 0) == ABI_SUCCESS, "stream");
  CUfunction small = work_kernel("20000");
  CUgraphExec graph = (CUgraphExec)(uintptr_t)6000000;
  uint64_t before = stub()->gpu_ns;
  for (int i = 0; i < 5; i++)
    CHECK(cuGraphLaunch(graph, stream) == ABI_SUCCESS && cuStreamSynchronize(stream) == ABI_SUCCESS, "graph");
  stub()->most_ahead_ns = 0;
  for (int i = 0; i < 30; i++) {
    CHECK(cuGraphLaunch(graph, stream) == ABI_SUCCESS, "graph");
    for (int k = 0; k < 20; k++) CHECK(launch(small, stream) == ABI_SUCCESS, "kernel");
  }
  CHECK(cuStreamSynchronize(stream) == ABI_SUCCESS, "sync");
  double measured = (double)GET(work_slot()->gpu_ns), expected = (double)(stub()->gpu_ns - before);
  printf("  graphs of 6 ms among kernels of 20 us: at most %.2f ms ahead; measured %.1f of %.1f ms\n",
         (double)stub()->most_ahead_ns / 1e6, measured / 1e6, expected / 1e6);
  CHECK(measured > expected * 0.9 && measured < expected * 2 + 50e6, "measured %.3f", measured / expected);
  CHECK(stub()->most_ahead_ns < 12000000, "two graphs ahead of the GPU");
  CHECK(cuGraphExecDestroy(graph) == ABI_SUCCESS, "destroy");
}

/*
 * A graph that is launched repeatedly without waiting, before it was ever measured: at most one runs and one is queued.
 */
void role_graphs_long(const char *unused) {
  (void)unused;
  enum { EACH_NS = 30000000, LAUNCHES = 12 };
  CUstream stream = NULL;
  work_begin();
  CHECK(cuStreamCreate(&stream, 0) == ABI_SUCCESS, "stream");
  for (int fresh = 1; fresh >= 0; fresh--) { /* a different graph each time, then the same one */
    stub()->most_ahead_ns = 0;
    for (int i = 0; i < LAUNCHES; i++) {
      CUgraphExec graph = (CUgraphExec)(uintptr_t)(EACH_NS + 64 * (i + 1) * fresh);
      CHECK(cuGraphLaunch(graph, stream) == ABI_SUCCESS, "graph");
    }
    CHECK(cuStreamSynchronize(stream) == ABI_SUCCESS, "sync");
    printf("  graphs of 30 ms, %s: at most %.2f ms ahead\n", fresh ? "each new" : "the same",
           (double)stub()->most_ahead_ns / 1e6);
    CHECK(stub()->most_ahead_ns < 65000000, "more than two: %llu", (unsigned long long)stub()->most_ahead_ns);
  }
}

/*
 * Graphs with a conditional node, one of them in a child graph, that were short ten times and then are long: at most one
 * runs and one is queued.
 */
void role_graphs_conditional(const char *unused) {
  (void)unused;
  enum { LONG_NS = 10000000, LAUNCHES = 12 };
  uint64_t handle = 0;
  CUcontext context = work_begin();
  for (uintptr_t short_ns = 20001; short_ns <= 20003; short_ns += 2) {
    CUgraphExec graph = NULL;
    CUstream stream = NULL;
    CHECK(cuStreamCreate(&stream, 0) == ABI_SUCCESS, "stream");
    stub()->conditional_ns = 0;
    CHECK(cuGraphConditionalHandleCreate(&handle, (void *)short_ns, context, 0, 0) == ABI_SUCCESS, "handle");
    CHECK(cuGraphInstantiateWithFlags(&graph, (void *)short_ns, 0) == ABI_SUCCESS, "instantiate");
    for (int i = 0; i < 10; i++)
      CHECK(cuGraphLaunch(graph, stream) == ABI_SUCCESS && cuStreamSynchronize(stream) == ABI_SUCCESS, "short");
    stub()->conditional_ns = LONG_NS;
    stub()->most_ahead_ns = 0;
    uint64_t before = GET(work_slot()->gpu_ns);
    for (int i = 0; i < LAUNCHES; i++) CHECK(cuGraphLaunch(graph, stream) == ABI_SUCCESS, "long");
    CHECK(cuStreamSynchronize(stream) == ABI_SUCCESS, "sync");
    double measured = (double)(GET(work_slot()->gpu_ns) - before);
    printf("  conditional graphs of 0.02 ms, then 10 ms: at most %.2f ms ahead, charged %.1f ms\n",
           (double)stub()->most_ahead_ns / 1e6, measured / 1e6);
    CHECK(stub()->most_ahead_ns < 22000000, "more than two: %llu", (unsigned long long)stub()->most_ahead_ns);
    CHECK(measured > 0.98 * LONG_NS * LAUNCHES, "charged %.1f ms", measured / 1e6);
    CHECK(cuGraphExecDestroy(graph) == ABI_SUCCESS, "destroy");
  }
}

/*
 * A failed capture is over, and a capture begun by a function that the hook does not know is recognised: the hook
 * records no event in it.
 */
void role_capture_other(const char *unused) {
  (void)unused;
  CUstream stream = NULL;
  void *graph = NULL;
  abi_result (*capture)(CUstream, void *) = NULL;
  work_begin();
  void *found = stub_symbol("cuStreamBeginCaptureToCig");
  memcpy(&capture, &found, sizeof capture);
  CHECK(cuStreamCreate(&stream, 0) == ABI_SUCCESS, "stream");
  CUfunction function = work_kernel("20000");
  for (int round = 0; round < 20; round++) {
    for (int i = 0; i < 10; i++) CHECK(launch(function, stream) == ABI_SUCCESS, "launch");
    CHECK(capture(stream, NULL) == ABI_SUCCESS, "begin");
    for (int i = 0; i < 200; i++) CHECK(launch(function, stream) == ABI_SUCCESS, "captured");
    usleep(2000);
    CHECK(cuStreamEndCaptureToCig(stream) == ABI_SUCCESS, "end");
    CHECK(cuStreamBeginCapture_v2(stream, 0) == ABI_SUCCESS, "begin");
    CHECK(cuStreamSynchronize(stream) == 900 && cuStreamEndCapture(stream, &graph) == 901, "a capture that fails");
  }
  CHECK(cuStreamSynchronize(stream) == ABI_SUCCESS, "sync");
  CHECK(stub()->polluted == 0, "%llu events in captures", (unsigned long long)stub()->polluted);
}

/* Streams whose first use is in a capture: the hook must ask nothing of them that would end it. */
void role_capture_new(const char *unused) {
  (void)unused;
  enum { STREAMS = 20 };
  CUstream streams[STREAMS];
  CUevent event = NULL;
  void *graph = NULL;
  work_begin();
  CUfunction function = work_kernel("20000");
  CHECK(cuEventCreate(&event, 0) == ABI_SUCCESS, "event");
  for (int i = 0; i < STREAMS; i++) {
    CHECK(cuStreamCreate(&streams[i], 0) == ABI_SUCCESS && cuStreamBeginCapture_v2(streams[i], 0) == ABI_SUCCESS,
          "begin");
    CHECK(launch(function, streams[i]) == ABI_SUCCESS && cuEventRecord(event, streams[i]) == ABI_SUCCESS, "captured");
    CHECK(cuStreamEndCapture(streams[i], &graph) == ABI_SUCCESS, "the capture of stream %d has ended early", i);
    CHECK(launch(function, streams[i]) == ABI_SUCCESS && cuStreamSynchronize(streams[i]) == ABI_SUCCESS, "work");
  }
}
