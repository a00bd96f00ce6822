/*
 * The inputs of random requests, led by what they reach of the core.
 *   fuzz_core replay CORPUS                      plays the inputs of a directory
 *   fuzz_core fuzz REQUESTS SEED CORPUS [NEW]    plays those, then changed and new ones, so many requests in all. An
 *                                                input that reaches a new place of the core is shortened, and changed
 *                                                further. NEW, a directory, gets the fewest that reach all the places.
 * A place is a branch of the core (-fsanitize-coverage=trace-pc). If a check fails, the input that made it fail lies in
 * the file failed-input.
 */
#include "fuzz.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 1 << 16, PLACES = 1 << 16, MOST_INPUTS = 1 << 14 };

struct input {
  unsigned char *bytes;
  size_t size;
};

/* The present input. It grows by random bytes up to `most`. */
static unsigned char now[MOST_BYTES];
static size_t size, at, most;
static const char *name; /* of its file, or NULL */
static uint64_t state, requests, most_tries = 100;

static struct input inputs[MOST_INPUTS];
static size_t count;

static unsigned char seen[PLACES], is_reached[PLACES];
static uint32_t reached[PLACES], reached_count, seen_count;
static uintptr_t before;

/* ---- what the core reaches ---- */

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void) {
  uintptr_t here = (uintptr_t)__builtin_return_address(0) - (uintptr_t)&play_round;
  uint32_t place = (uint32_t)((here ^ before * 31) * 0x9e3779b1u) >> 16;
  before = here;
  if (is_reached[place]) return;
  is_reached[place] = 1;
  reached[reached_count++] = place;
}

/* ---- draws ---- */

static uint64_t next(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}
static size_t next_below(size_t limit) { return limit == 0 ? 0 : (size_t)(next() >> 16) % limit; }

static uint32_t take(void) {
  if (at >= most) return 0;
  if (at == size) now[size++] = (unsigned char)(next() >> 32);
  return now[at++];
}

uint32_t below(uint32_t limit) { return (limit <= 256 ? take() : take() | take() << 8) % limit; }

uint64_t random64(void) {
  uint64_t value = 0;
  for (int i = 0; i < 8; i++) value = value << 8 | take();
  return value;
}

void random_bytes(unsigned char *into, size_t bytes) {
  uint64_t from = take() * 0x9e3779b97f4a7c15u;
  for (size_t i = 0; i < bytes; i++, from = from * 6364136223846793005u + 1442695040888963407u * (from != 0))
    into[i] = (unsigned char)(from >> 56);
}

int is_at_end(void) { return at >= most; }

/* ---- inputs ---- */

static void save(const char *path) {
  FILE *file = fopen(path, "wb");
  if (file == NULL || fwrite(now, 1, size, file) != size || fclose(file) != 0) {
    fprintf(stderr, "%s cannot be written\n", path);
    exit(1);
  }
}

static void report(void) {
  fprintf(stderr, "the input: %s\n", name != NULL ? name : "failed-input");
  if (name == NULL) save("failed-input");
}

static void aborted(int number) {
  report();
  signal(number, SIG_DFL);
  raise(number);
}

void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

/* Plays what lies in `now`, which may grow up to `largest`, and is cut to what has been used. */
static void play(size_t largest) {
  for (uint32_t i = 0; i < reached_count; i++) is_reached[reached[i]] = 0;
  reached_count = 0;
  before = 0;
  at = 0;
  most = largest;
  requests += play_round();
  size = at;
}

static void load(const struct input *input) {
  if (input->size != 0) memcpy(now, input->bytes, input->size);
  size = input->size;
}

static struct input copy_of_now(void) {
  struct input copy = {.bytes = malloc(size + 1), .size = size};
  if (copy.bytes == NULL) abort();
  memcpy(copy.bytes, now, size);
  return copy;
}

/* How many places this input is the first to reach. */
static uint32_t reached_fresh(void) {
  uint32_t fresh = 0;
  for (uint32_t i = 0; i < reached_count; i++) fresh += !seen[reached[i]];
  return fresh;
}

static void note_seen(void) {
  seen_count += reached_fresh();
  for (uint32_t i = 0; i < reached_count; i++) seen[reached[i]] = 1;
}

static int reaches(const uint32_t *wanted, uint32_t number) {
  for (uint32_t i = 0; i < number; i++) {
    if (!is_reached[wanted[i]]) return 0;
  }
  return 1;
}

/* Takes out of `now` what it does not need to reach its new places, with a limited number of tries. */
static struct input shortened(void) {
  static uint32_t wanted[PLACES];
  uint32_t number = 0, tries = 0;
  struct input best = copy_of_now();
  for (uint32_t i = 0; i < reached_count; i++) {
    if (!seen[reached[i]]) wanted[number++] = reached[i];
  }
  for (size_t part = best.size / 2; part >= 8; part /= 2) {
    for (size_t end = best.size; end >= part && tries < most_tries; tries++, end = end < best.size ? end : best.size) {
      size_t from = end - part;
      memcpy(now, best.bytes, from);
      memcpy(now + from, best.bytes + end, best.size - end);
      size = best.size - part;
      play(size);
      if (reaches(wanted, number)) {
        free(best.bytes);
        best = copy_of_now();
      }
      end = from;
    }
  }
  load(&best);
  play(size);
  return best;
}

static void keep(struct input input) {
  if (count == MOST_INPUTS) abort();
  inputs[count++] = input;
}

static void change(void) {
  size_t from = next_below(size), part = 1 + next_below(next_below(4) == 0 ? 256 : 32);
  const struct input *other = &inputs[next_below(count)];
  switch (next_below(5)) {
    case 0:
      if (size != 0) now[from] = (unsigned char)next();
      break;
    case 1:
      if (size != 0) now[from] ^= (unsigned char)(1 << next_below(8));
      break;
    case 2: /* less */
      if (part > size - from) part = size - from;
      memmove(now + from, now + from + part, size - from - part);
      size -= part;
      break;
    case 3: /* more */
      if (size + part > MOST_BYTES) break;
      memmove(now + from + part, now + from, size - from);
      for (size_t i = 0; i < part; i++) now[from + i] = (unsigned char)(next() >> 32);
      size += part;
      break;
    default: { /* goes on as another one does */
      size_t there = next_below(other->size), rest = other->size - there;
      if (rest > MOST_BYTES - from) rest = MOST_BYTES - from;
      if (rest != 0) memcpy(now + from, other->bytes + there, rest);
      size = from + rest;
      break;
    }
  }
}

static void play_another(void) {
  size_t more = 0;
  size = 0;
  if (count == 0 || next_below(4) == 0) {
    more = (size_t)256 << next_below(9); /* a new one */
  } else {
    load(&inputs[next_below(4) == 0 ? count - 1 - next_below(count / 8 + 1) : next_below(count)]);
    for (size_t changes = 1 + next_below(6); changes > 0; changes--) change();
    if (next_below(2) == 0) more = next_below(2048);
  }
  play(size + more < MOST_BYTES ? size + more : MOST_BYTES);
}

/* ---- the corpus ---- */

static int is_file(const struct dirent *entry) { return entry->d_name[0] != '.'; }

static void play_corpus(const char *corpus, int keeps) {
  struct dirent **entries;
  char path[4096];
  int files = scandir(corpus, &entries, is_file, alphasort);
  if (files < 0) {
    fprintf(stderr, "%s cannot be read\n", corpus);
    exit(1);
  }
  for (int i = 0; i < files; i++) {
    snprintf(path, sizeof path, "%s/%s", corpus, entries[i]->d_name);
    FILE *file = fopen(path, "rb");
    if (file == NULL) abort();
    size = fread(now, 1, MOST_BYTES, file);
    fclose(file);
    name = path;
    play(size);
    note_seen();
    if (keeps) keep(copy_of_now());
    free(entries[i]);
  }
  free(entries);
  name = NULL;
  printf("ok   corpus: %d inputs, %llu requests, %u places\n", files, (unsigned long long)requests, seen_count);
  fflush(stdout);
}

static int by_size(const void *one, const void *other) {
  size_t left = ((const struct input *)one)->size, right = ((const struct input *)other)->size;
  return left < right ? -1 : left > right;
}

/* Each input, the shortest first, that reaches a place which none before it has reached. */
static void save_fewest(const char *directory) {
  char path[4096];
  unsigned saved = 0;
  size_t bytes = 0;
  memset(seen, 0, sizeof seen);
  seen_count = 0;
  most_tries = 1000;
  qsort(inputs, count, sizeof *inputs, by_size);
  for (size_t i = 0; i < count; i++) {
    load(&inputs[i]);
    play(size);
    if (reached_fresh() == 0) continue;
    free(inputs[i].bytes);
    inputs[i] = shortened();
    note_seen();
    snprintf(path, sizeof path, "%s/%03u", directory, saved++);
    bytes += size;
    save(path);
  }
  printf("kept %u inputs, %zu bytes, %u places\n", saved, bytes, seen_count);
}

int main(int arguments, char **argument) {
  signal(SIGABRT, aborted);
  if (__sanitizer_set_death_callback != NULL) __sanitizer_set_death_callback(report);
  if (arguments == 3 && strcmp(argument[1], "replay") == 0) {
    play_corpus(argument[2], 0);
    return 0;
  }
  if (arguments < 5 || arguments > 6 || strcmp(argument[1], "fuzz") != 0) return 2;
  uint64_t wanted = strtoull(argument[2], NULL, 10), rounds = 0;
  state = 88172645463325252ull ^ strtoull(argument[3], NULL, 10) * 0x9e3779b97f4a7c15ull;
  if (state == 0) state = 1;
  printf("VGPU_TEST_SEED=%s repeats what this draws\n", argument[3]);
  play_corpus(argument[4], 1);
  for (; requests < wanted; rounds++) {
    play_another();
    if (reached_fresh() == 0) continue;
    keep(shortened());
    note_seen();
  }
  printf("ok   fuzz: %llu requests, %llu inputs drawn, %zu kept, %u places\n", (unsigned long long)requests,
         (unsigned long long)rounds, count, seen_count);
  if (arguments == 6) save_fewest(argument[5]);
  for (size_t i = 0; i < count; i++) free(inputs[i].bytes);
  return 0;
}
