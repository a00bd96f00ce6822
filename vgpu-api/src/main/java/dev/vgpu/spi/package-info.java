/**
 * What a provider of GPUs or a backend implements. Found by {@link java.util.ServiceLoader}. These
 * types may change in a minor release until 1.0.
 */
@NullMarked
package dev.vgpu.spi;

import org.jspecify.annotations.NullMarked;
