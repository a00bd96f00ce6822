/** Tests of the dashboard. */
@NullMarked
package dev.vgpu.cli.web;

import org.jspecify.annotations.NullMarked;
