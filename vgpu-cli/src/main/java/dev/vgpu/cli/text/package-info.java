/** The command's words for sizes, policies, devices, events and leases. */
@NullMarked
package dev.vgpu.cli.text;

import org.jspecify.annotations.NullMarked;
