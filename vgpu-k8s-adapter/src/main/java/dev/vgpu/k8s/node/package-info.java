/** The role {@code node}: gives the pods of one node their virtual GPUs. */
@NullMarked
package dev.vgpu.k8s.node;

import org.jspecify.annotations.NullMarked;
