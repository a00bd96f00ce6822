/** The demo's online load: traces, their requests, and the schedules to replay. */
@NullMarked
package dev.vgpu.cli.trace;

import org.jspecify.annotations.NullMarked;
