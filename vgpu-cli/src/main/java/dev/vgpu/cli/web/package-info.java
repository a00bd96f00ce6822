/**
 * The dashboard: a page that shows which tenants use the GPUs, and why tenants wait. Uses only the
 * public API of vgpu and JSON; the clock is passed in.
 */
@NullMarked
package dev.vgpu.cli.web;

import org.jspecify.annotations.NullMarked;
