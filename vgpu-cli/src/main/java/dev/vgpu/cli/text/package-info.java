/** The words of the command: sizes, policies, devices, events and leases as a person reads them. */
@NullMarked
package dev.vgpu.cli.text;

import org.jspecify.annotations.NullMarked;
