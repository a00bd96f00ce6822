/** The first of two ways to virtual GPUs: dynamic resource allocation (DRA). */
@NullMarked
package dev.vgpu.k8s.node.dra;

import org.jspecify.annotations.NullMarked;
