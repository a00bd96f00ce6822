/** What the HTTP listeners of the command share. Uses only the JDK. */
@NullMarked
package dev.vgpu.cli.http;

import org.jspecify.annotations.NullMarked;
