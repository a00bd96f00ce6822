/**
 * What an application asks for: a {@link dev.vgpu.request.VirtualGpuRequest} and its terms, which
 * are share policy, preemption class, memory sizes, parts of a GPU, and capabilities.
 */
@NullMarked
package dev.vgpu.request;

import org.jspecify.annotations.NullMarked;
