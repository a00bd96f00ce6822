/** The usage of each container, for Prometheus. */
@NullMarked
package dev.vgpu.k8s.node.metrics;

import org.jspecify.annotations.NullMarked;
