/** Puts this JVM under leases, and its threads into green contexts. */
@NullMarked
package dev.vgpu.cuda.attach;

import org.jspecify.annotations.NullMarked;
