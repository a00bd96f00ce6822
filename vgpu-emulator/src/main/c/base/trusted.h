/* Whether only this user and root control a directory. */
#ifndef VGPU_EMU_TRUSTED_H
#define VGPU_EMU_TRUSTED_H

#include <stddef.h>

/*
 * Checks a directory by the rule of TrustedFiles.java: each component of the path must belong to this process's user,
 * to root, or to the owner of the root directory, and must not be writable by other users or by a group whose number is
 * not the owner's. Components above the last may be writable by others if they are sticky. Components that do not exist
 * yet pass. The existing part of `path` is replaced by its real path. Returns 0, or -1 with the reason in `problem`.
 */
int emu_trust_directory(char *path, size_t size, char *problem, size_t problem_size);

#endif
