/** Java model libraries under virtual GPUs; written to be copied. */
@NullMarked
package dev.vgpu.samples.libraries;

import org.jspecify.annotations.NullMarked;
