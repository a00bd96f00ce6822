/**
 * The dashboard: a page that shows which tenants use the GPUs, and why tenants wait. Uses only the
 * public API of vgpu, JSON and {@code dev.vgpu.cli.http}; the clock is passed in.
 */
@NullMarked
package dev.vgpu.cli.web;

import org.jspecify.annotations.NullMarked;
