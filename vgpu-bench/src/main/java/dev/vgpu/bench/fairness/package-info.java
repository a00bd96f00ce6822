/** Whether tenants get what they are entitled to, second by second, and the cost of sharing. */
@NullMarked
package dev.vgpu.bench.fairness;

import org.jspecify.annotations.NullMarked;
