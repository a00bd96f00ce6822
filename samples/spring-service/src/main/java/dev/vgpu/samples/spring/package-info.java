/** A Spring Boot service whose models share one GPU; written to be copied. */
@NullMarked
package dev.vgpu.samples.spring;

import org.jspecify.annotations.NullMarked;
