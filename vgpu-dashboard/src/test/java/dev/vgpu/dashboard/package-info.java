/** Tests of the dashboard. */
@NullMarked
package dev.vgpu.dashboard;

import org.jspecify.annotations.NullMarked;
