/** The command's output for people: streams, colours, tables and progress. */
@NullMarked
package dev.vgpu.cli.console;

import org.jspecify.annotations.NullMarked;
