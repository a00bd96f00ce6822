/**
 * Learns the peak memory of a model's runs, so that no caller states it. Only the integrations of
 * inference engines use this package.
 */
@NullMarked
package dev.vgpu.memory;

import org.jspecify.annotations.NullMarked;
