/**
 * The dashboard: a page that shows who holds the GPUs and why somebody waits. Needs only the public
 * API of vgpu and JSON; time is given to it.
 */
@NullMarked
package dev.vgpu.cli.web;

import org.jspecify.annotations.NullMarked;
