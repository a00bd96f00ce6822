/*
 * What random requests are drawn from: an input, which is a file of the corpus, a changed one, or new random bytes
 * (fuzz_inputs.c). fuzz_core.c makes requests of it.
 */
#ifndef VGPU_FUZZ_H
#define VGPU_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* A number below the limit, of as few bytes of the input as it takes. */
uint32_t below(uint32_t limit);
/* Any number. */
uint64_t random64(void);
/* Bytes without a meaning, which take one byte of the input. */
void random_bytes(unsigned char *into, size_t size);
/* Whether the input has come to its end. From then on every draw is 0. */
int is_at_end(void);

/* Plays a round with the present input. Ends the program with an error if a check fails. Returns the requests. */
uint64_t play_round(void);

#endif
