/** Installed components: providers that find GPUs and backends that enforce virtual GPUs. */
@NullMarked
package dev.vgpu.core.discovery;

import org.jspecify.annotations.NullMarked;
