/**
 * The files that a program or container needs: the hook, the driver's libraries, and device nodes.
 */
@NullMarked
package dev.vgpu.cuda.files;

import org.jspecify.annotations.NullMarked;
