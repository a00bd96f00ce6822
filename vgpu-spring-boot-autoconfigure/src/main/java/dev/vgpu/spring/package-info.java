/**
 * A virtual GPU for each model of a Spring Boot service, from its configuration: see {@link
 * dev.vgpu.spring.VgpuProperties}.
 */
@NullMarked
package dev.vgpu.spring;

import org.jspecify.annotations.NullMarked;
