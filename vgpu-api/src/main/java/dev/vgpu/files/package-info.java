/** The rules for files that this process trusts. Only the modules of vgpu use this package. */
@NullMarked
package dev.vgpu.files;

import org.jspecify.annotations.NullMarked;
