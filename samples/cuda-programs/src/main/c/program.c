/* Options, time, signals, percentiles, errors. */
#include "program.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NS_PER_S 1000000000ull
#define SLEEP_PIECE_NS 100000000ull

static const char *program_name = "program";
static volatile sig_atomic_t stopped;

void program_error(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "%s: ", program_name);
  vfprintf(stderr, format, arguments);
  fprintf(stderr, "\n");
  va_end(arguments);
}

__attribute__((noreturn, format(printf, 1, 2))) static void wrong_usage(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "%s: ", program_name);
  vfprintf(stderr, format, arguments);
  fprintf(stderr, "\nRun '%s --help' to see what can be given.\n", program_name);
  va_end(arguments);
  exit(2);
}

static void print_default(const struct option_row *option) {
  if (option->kind == OPTION_COUNT) {
    printf(" (default %llu)", (unsigned long long)*(const uint64_t *)option->value);
  } else if (option->kind == OPTION_SIZE) {
    uint64_t bytes = *(const uint64_t *)option->value;
    if (bytes % (1u << 20) == 0) {
      printf(" (default %lluMiB)", (unsigned long long)(bytes >> 20));
    } else {
      printf(" (default %llu)", (unsigned long long)bytes);
    }
  } else if (option->kind == OPTION_DECIMAL) {
    printf(" (default %g)", *(const double *)option->value);
  }
}

static void print_help(const char *summary, const struct option_row *options, size_t count) {
  static const char *const values[] = {"", " N", " SIZE", " X", " WORD"};
  printf("Usage: %s [OPTIONS]\n%s\n\n", program_name, summary);
  for (size_t i = 0; i < count; i++) {
    char left[64];
    snprintf(left, sizeof(left), "--%s%s", options[i].name, values[options[i].kind]);
    printf("  %-18s %s", left, options[i].help);
    if (options[i].kind == OPTION_CHOICE) {
      printf(": %s", options[i].choices);
    }
    print_default(&options[i]);
    printf("\n");
  }
  printf("  %-18s %s\n\n", "--help", "show this help");
  printf("Exit codes: 0 done (also when ended by SIGINT or SIGTERM), 1 failed, 2 wrong usage.\n");
}

static double unit_of(const char *name, const char *text) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double factor = 1;
  for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
    if (*text == '\0' || strcmp(text, units[i]) == 0) {
      return factor;
    }
    factor *= 1024;
  }
  wrong_usage("--%s: not a size, such as 512MiB: '%s'", name, text);
}

static void read_choice(const struct option_row *option, const char *text) {
  const char *word = option->choices;
  for (int place = 0;; place++) {
    size_t length = strcspn(word, ",");
    if (strlen(text) == length && strncmp(word, text, length) == 0) {
      *(int *)option->value = place;
      return;
    }
    if (word[length] == '\0') {
      wrong_usage("--%s: not one of %s: '%s'", option->name, option->choices, text);
    }
    word += length + 1;
  }
}

static void read_number(const struct option_row *option, const char *text) {
  char *end;
  errno = 0;
  double number = strtod(text, &end);
  bool is_whole = option->kind == OPTION_COUNT || (option->kind == OPTION_SIZE && *end == '\0');
  if (end == text || errno != 0 || !isfinite(number) || (is_whole && number != floor(number))) {
    wrong_usage("--%s: not a%s number: '%s'", option->name, is_whole ? " whole" : "", text);
  }
  if (option->kind == OPTION_SIZE) {
    number *= unit_of(option->name, end);
  } else if (*end != '\0') {
    wrong_usage("--%s: not a number: '%s'", option->name, text);
  }
  if (number < option->least || number > option->most) {
    wrong_usage("--%s: not within %.15g to %.15g: '%s'", option->name, option->least, option->most, text);
  }
  if (option->kind == OPTION_DECIMAL) {
    *(double *)option->value = number;
  } else {
    *(uint64_t *)option->value = (uint64_t)number;
  }
}

/* Reads the option at argv[at]; returns where the next one is. */
static int read_option(int argc, char **argv, int at, const struct option_row *options, size_t count) {
  const char *given = argv[at];
  size_t length = strcspn(given, "=");
  const char *value = given[length] == '=' ? given + length + 1 : NULL;
  for (size_t i = 0; i < count; i++) {
    const struct option_row *option = &options[i];
    if (strncmp(given, "--", 2) != 0 || length != strlen(option->name) + 2 ||
        strncmp(given + 2, option->name, length - 2) != 0) {
      continue;
    }
    if (option->kind == OPTION_FLAG) {
      if (value != NULL) {
        wrong_usage("--%s takes no value", option->name);
      }
      *(bool *)option->value = true;
      return at + 1;
    }
    if (value == NULL && at + 1 == argc) {
      wrong_usage("--%s needs a value", option->name);
    }
    bool is_apart = value == NULL;
    value = is_apart ? argv[at + 1] : value;
    if (option->kind == OPTION_CHOICE) {
      read_choice(option, value);
    } else {
      read_number(option, value);
    }
    return at + (is_apart ? 2 : 1);
  }
  wrong_usage("not known: '%s'", given);
}

static void stop(int signal_number) {
  (void)signal_number;
  stopped = 1;
}

static void catch_signals(void) {
  static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction action;
  memset(&action, 0, sizeof(action));
  action.sa_handler = stop;
  /* Once: the second signal ends the program, should it hang in the driver. Calls go on. */
  action.sa_flags = (int)(SA_RESETHAND | SA_RESTART);
  for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
    struct sigaction now;
    if (sigaction(signals[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN) {
      sigaction(signals[i], &action, NULL);
    }
  }
}

void program_begin(int argc, char **argv, const char *summary, const struct option_row *options, size_t count) {
  const char *slash = strrchr(argv[0], '/');
  program_name = slash == NULL ? argv[0] : slash + 1;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
      print_help(summary, options, count);
      exit(0);
    }
  }
  for (int i = 1; i < argc;) {
    i = read_option(argc, argv, i, options, count);
  }
  catch_signals();
}

bool program_stopped(void) { return stopped != 0; }

uint64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec;
}

void sleep_until(uint64_t deadline_ns) {
  /* In pieces, because a signal between the check and the sleep does not end the sleep. */
  while (!program_stopped()) {
    uint64_t now = now_ns();
    if (now >= deadline_ns) {
      return;
    }
    uint64_t until = deadline_ns - now < SLEEP_PIECE_NS ? deadline_ns : now + SLEEP_PIECE_NS;
    struct timespec deadline = {(time_t)(until / NS_PER_S), (long)(until % NS_PER_S)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, NULL);
  }
}

static size_t bucket_of(uint64_t value) {
  /* So that value >> shift is below 2 * HISTOGRAM_STEPS, which has 6 bits. */
  unsigned int bits = 64u - (unsigned int)__builtin_clzll(value | 1);
  unsigned int shift = bits > 6 ? bits - 6 : 0;
  return shift * HISTOGRAM_STEPS + (size_t)(value >> shift);
}

/* The largest value that goes into a bucket. */
static uint64_t bucket_top(size_t bucket) {
  if (bucket < 2 * HISTOGRAM_STEPS) {
    return bucket;
  }
  size_t shift = bucket / HISTOGRAM_STEPS - 1;
  uint64_t step = bucket - shift * HISTOGRAM_STEPS;
  return ((step + 1) << shift) - 1;
}

void histogram_add(struct histogram *histogram, uint64_t value) {
  histogram->count++;
  histogram->sum += value;
  if (value > histogram->largest) {
    histogram->largest = value;
  }
  histogram->buckets[bucket_of(value)]++;
}

uint64_t histogram_percentile(const struct histogram *histogram, double percent) {
  uint64_t wanted = (uint64_t)ceil((double)histogram->count * percent / 100.0);
  uint64_t seen = 0;
  if (histogram->count == 0) {
    return 0;
  }
  for (size_t i = 0; i < sizeof(histogram->buckets) / sizeof(histogram->buckets[0]); i++) {
    seen += histogram->buckets[i];
    if (seen >= wanted && seen > 0) {
      uint64_t top = bucket_top(i);
      return top < histogram->largest ? top : histogram->largest;
    }
  }
  return histogram->largest;
}
