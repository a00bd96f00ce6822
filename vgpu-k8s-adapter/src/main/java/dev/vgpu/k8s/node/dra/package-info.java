/** The first way: dynamic resource allocation. */
@NullMarked
package dev.vgpu.k8s.node.dra;

import org.jspecify.annotations.NullMarked;
