/**
 * The rules for files that this process trusts, and files of the kernel that several modules read.
 * Only the modules of vgpu use this package.
 */
@NullMarked
package dev.vgpu.files;

import org.jspecify.annotations.NullMarked;
