/** The context that every command gets, and the options that several of them have. */
@NullMarked
package dev.vgpu.cli.command;

import org.jspecify.annotations.NullMarked;
