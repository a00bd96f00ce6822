/* The kinds of memory that a churning thread allocates and frees, each through the driver's own functions. */
#ifndef VGPU_BENCH_CHURN_KINDS_H
#define VGPU_BENCH_CHURN_KINDS_H

#include "program.h"

enum kind { KIND_ALLOC, KIND_ASYNC, KIND_PHYSICAL, KIND_ARRAY, KIND_MANAGED, KIND_GRAPH, KINDS, KIND_MIXED = KINDS };

/* A piece of memory that a thread holds. */
struct piece {
  enum kind kind;
  uint64_t bytes; /* a lower bound of what is allocated */
  uint64_t handle;
  void *graph;
  void *exec;
};

/* The kind with a name; KINDS + 1 if there is none. */
enum kind kind_named(const char *name);

/* Looks the functions up. */
void kinds_load(void);

/* Allocates about this many bytes and records the exact number; returns the driver's code. */
CUresult piece_take(struct piece *piece, enum kind kind, uint64_t bytes);
CUresult piece_give(const struct piece *piece);

#endif
