/** What time it is. */
@NullMarked
package dev.vgpu.k8s.time;

import org.jspecify.annotations.NullMarked;
