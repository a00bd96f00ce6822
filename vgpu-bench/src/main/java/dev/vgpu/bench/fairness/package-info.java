/** Whether tenants get what they are entitled to, second by second, and what sharing costs. */
@NullMarked
package dev.vgpu.bench.fairness;

import org.jspecify.annotations.NullMarked;
