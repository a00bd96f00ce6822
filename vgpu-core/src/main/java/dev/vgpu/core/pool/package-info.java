/** The pool: admission, leases, events, and the virtual GPUs that callers hold. */
@NullMarked
package dev.vgpu.core.pool;

import org.jspecify.annotations.NullMarked;
