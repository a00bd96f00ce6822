/** What each container used, for Prometheus. */
@NullMarked
package dev.vgpu.k8s.node.metrics;

import org.jspecify.annotations.NullMarked;
