/** The role {@code scheduler}: decides which GPUs the cluster's pods get, gangs as a whole. */
@NullMarked
package dev.vgpu.k8s.scheduler;

import org.jspecify.annotations.NullMarked;
