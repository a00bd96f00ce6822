/**
 * The interfaces that a provider of GPUs or a backend implements, and classes that forward. {@link
 * java.util.ServiceLoader} finds the implementations. These types may change in a minor release
 * until 1.0.
 */
@NullMarked
package dev.vgpu.spi;

import org.jspecify.annotations.NullMarked;
