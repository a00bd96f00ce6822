/**
 * The virtual GPUs of this node's containers, recorded so that they survive a crash of this process
 * at any moment.
 */
@NullMarked
package dev.vgpu.k8s.node.holding;

import org.jspecify.annotations.NullMarked;
