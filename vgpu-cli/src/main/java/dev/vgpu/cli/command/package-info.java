/** The context of every command, and the options that several commands have in common. */
@NullMarked
package dev.vgpu.cli.command;

import org.jspecify.annotations.NullMarked;
