/** The second way: the device plugin, for clusters without dynamic resource allocation. */
@NullMarked
package dev.vgpu.k8s.node.slot;

import org.jspecify.annotations.NullMarked;
