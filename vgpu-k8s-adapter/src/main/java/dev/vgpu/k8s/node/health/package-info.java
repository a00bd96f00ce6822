/** Which of the node's GPUs can be relied on. */
@NullMarked
package dev.vgpu.k8s.node.health;

import org.jspecify.annotations.NullMarked;
