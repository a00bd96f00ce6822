/** The program {@code vgpu-k8s}: virtual GPUs for the pods of a Kubernetes cluster. */
@NullMarked
package dev.vgpu.k8s;

import org.jspecify.annotations.NullMarked;
