/** The demo's online load: the schedules of a trace's requests to replay. */
@NullMarked
package dev.vgpu.bench.trace;

import org.jspecify.annotations.NullMarked;
