/* Which of a lease's GPUs a program is shown. Works on plain text only. */
#include "shown.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { LEAST_PREFIX = 5, MOST_DIGITS = 4 };

struct word {
  const char *text;
  size_t length;
};

/* Reads the next word of a list; returns 0 at the end. An empty word counts as a word, and names nothing. */
static int vgpu__next(const char **at, struct word *word) {
  if (*at == NULL || **at == '\0') return 0;
  while (**at == ' ' || **at == '\t') ++*at;
  word->text = *at;
  word->length = strcspn(*at, ",");
  *at += word->length;
  if (**at == ',') ++*at;
  while (word->length > 0 && isspace((unsigned char)word->text[word->length - 1])) word->length--;
  return 1;
}

static int vgpu__numbered(const char *ours, struct word asked, struct word *found) {
  unsigned index = 0;
  if (asked.length > MOST_DIGITS) return 0;
  for (size_t i = 0; i < asked.length; i++) {
    if (!isdigit((unsigned char)asked.text[i])) return 0;
    index = index * 10 + (unsigned)(asked.text[i] - '0');
  }
  while (vgpu__next(&ours, found)) {
    if (index-- == 0) return 1;
  }
  return 0;
}

static int vgpu__named(const char *ours, struct word asked, struct word *found) {
  struct word word;
  int matches = 0;
  if (asked.length < LEAST_PREFIX) return 0;
  while (vgpu__next(&ours, &word)) {
    if (word.length < asked.length || strncasecmp(word.text, asked.text, asked.length) != 0) continue;
    *found = word;
    matches++;
    if (word.length == asked.length) return 1;
  }
  return matches == 1;
}

static int vgpu__append(struct word word, char *into, size_t size) {
  size_t used = strlen(into);
  if (word.length + 2 > size - used) return -1;
  if (used > 0) into[used++] = ',';
  memcpy(into + used, word.text, word.length);
  into[used + word.length] = '\0';
  return 0;
}

int vgpu__shown(const char *ours, const char *wish, char *into, size_t size) {
  struct word asked, found;
  into[0] = '\0';
  const char *at = wish == NULL ? ours : wish;
  while (vgpu__next(&at, &asked)) {
    int known = asked.length > 0 && (isdigit((unsigned char)asked.text[0]) ? vgpu__numbered(ours, asked, &found)
                                                                           : vgpu__named(ours, asked, &found));
    if (!known || vgpu__append(found, into, size) != 0) return 1;
  }
  return 0;
}

int vgpu__shown_index(const char *ours, const unsigned char *uuid) {
  struct word word;
  char name[40];
  snprintf(name, sizeof name, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", uuid[0], uuid[1],
           uuid[2], uuid[3], uuid[4], uuid[5], uuid[6], uuid[7], uuid[8], uuid[9], uuid[10], uuid[11], uuid[12],
           uuid[13], uuid[14], uuid[15]);
  size_t length = strlen(name);
  for (int i = 0; vgpu__next(&ours, &word); i++) {
    if (word.length >= length && strncasecmp(word.text + word.length - length, name, length) == 0) return i;
  }
  return -1;
}

int vgpu__shown_named(const char *ours, const char *name) {
  struct word word;
  size_t length = strlen(name);
  for (int i = 0; vgpu__next(&ours, &word); i++) {
    if (word.length == length && strncasecmp(word.text, name, length) == 0) return i;
  }
  return -1;
}

int vgpu__shown_at(const char *ours, unsigned position, char *into, size_t size) {
  struct word word;
  while (vgpu__next(&ours, &word)) {
    if (position-- > 0) continue;
    if (word.length == 0 || word.length >= size) return 0;
    memcpy(into, word.text, word.length);
    into[word.length] = '\0';
    return 1;
  }
  return 0;
}
