/**
 * The dashboard: a page that shows which tenants use the GPUs of a pool, and why tenants wait. Uses
 * only the public API of vgpu and the JDK's HTTP server.
 */
@NullMarked
package dev.vgpu.dashboard;

import org.jspecify.annotations.NullMarked;
