/** What people see of the command: its streams, colours, tables and progress. */
@NullMarked
package dev.vgpu.cli.console;

import org.jspecify.annotations.NullMarked;
