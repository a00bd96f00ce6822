/* What the sample programs share that has nothing to do with CUDA: options, time, signals, percentiles, errors. */
#ifndef SAMPLES_PROGRAM_H
#define SAMPLES_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_kind {
  OPTION_FLAG,    /* bool: given or not */
  OPTION_COUNT,   /* uint64_t: a whole number */
  OPTION_SIZE,    /* uint64_t: bytes, such as 512MiB */
  OPTION_DECIMAL, /* double: such as 2.5 */
  OPTION_CHOICE   /* int: the place in a list of words */
};

/* An option: --NAME and, but for a flag, a value. */
struct option_row {
  const char *name;
  enum option_kind kind;
  void *value; /* holds the default before */
  const char *choices;
  double least; /* of numbers and sizes */
  double most;
  const char *help;
};

/*
 * Reads the command line. Ends the program: with 0 after --help, with 2 after a mistake in the arguments, having said
 * which on standard error.
 */
void program_begin(int argc, char **argv, const char *summary, const struct option_row *options, size_t count);

/* Prints an error on standard error, behind the program's name. */
void program_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Whether SIGINT, SIGTERM or SIGHUP came. The second one ends the program at once. */
bool program_stopped(void);

/* CLOCK_MONOTONIC. */
uint64_t now_ns(void);

/* Sleeps until then, or until the program is stopped. */
void sleep_until(uint64_t deadline_ns);

/* A distribution of durations: exact to 1/32, any number of them, no allocation. */
#define HISTOGRAM_STEPS 32u
struct histogram {
  uint64_t count;
  uint64_t sum;
  uint64_t largest;
  uint64_t buckets[64 * HISTOGRAM_STEPS];
};

void histogram_add(struct histogram *histogram, uint64_t value);

/* The value that PERCENT of all do not exceed; 0 if there are none. */
uint64_t histogram_percentile(const struct histogram *histogram, double percent);

#endif
