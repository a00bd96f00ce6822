/*
 * Prints the sizes, offsets and numbers of abi_rows.def: of our declarations, or with -DTHEIRS of the toolkit's. Both
 * print the left-hand names, so that the test can compare the outputs.
 */
#ifdef THEIRS
#include <cuda.h>
#define PICK(ours, theirs) theirs
#else
#include "base/copy_abi.h"
#define PICK(ours, theirs) ours
#endif

#include <stddef.h>
#include <stdio.h>

int main(void) {
#define TYPE(ours, theirs) printf("%s %zu\n", #ours " " #theirs, sizeof(PICK(ours, theirs)));
#define FIELD(ours, our_field, theirs, their_field) \
    printf("%s %zu\n", #ours "." #our_field, \
           offsetof(PICK(ours, theirs), PICK(our_field, their_field)));
#define VALUE(name) printf("%s %d\n", #name, (int)(name));
#include "abi_rows.def"
    return 0;
}
