/** What HTTP listeners of vgpu share. Uses only the JDK. */
@NullMarked
package dev.vgpu.dashboard.http;

import org.jspecify.annotations.NullMarked;
