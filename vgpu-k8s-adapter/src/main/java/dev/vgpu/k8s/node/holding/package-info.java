/**
 * What the containers of this node hold, kept so that it outlasts a death of this process at any
 * moment.
 */
@NullMarked
package dev.vgpu.k8s.node.holding;

import org.jspecify.annotations.NullMarked;
