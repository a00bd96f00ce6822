/* Whether a directory is this user's or root's alone. */
#ifndef VGPU_EMU_TRUSTED_H
#define VGPU_EMU_TRUSTED_H

#include <stddef.h>

/* The same rule as TrustedFiles.java: each part of the path belongs to this process's user, to root,
 * or to the owner of the root directory, and no other user may write to it; on the way it may be
 * sticky. What is not there yet is no objection. Of `path`, what is there is replaced by where it
 * leads to, without links. 0, or -1 with the reason in `problem`. */
int emu_trust_directory(char *path, size_t size, char *problem, size_t problem_size);

#endif
