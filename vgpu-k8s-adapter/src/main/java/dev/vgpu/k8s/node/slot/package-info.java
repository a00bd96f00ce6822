/** The second way: the device plugin, where the cluster has no dynamic resource allocation. */
@NullMarked
package dev.vgpu.k8s.node.slot;

import org.jspecify.annotations.NullMarked;
