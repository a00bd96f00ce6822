/** The demo's online load: traces, their requests, and the schedule that is replayed. */
@NullMarked
package dev.vgpu.cli.trace;

import org.jspecify.annotations.NullMarked;
