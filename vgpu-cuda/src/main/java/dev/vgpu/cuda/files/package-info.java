/**
 * The files that a program or a container needs: the hook, the driver's libraries and the device
 * nodes.
 */
@NullMarked
package dev.vgpu.cuda.files;

import org.jspecify.annotations.NullMarked;
