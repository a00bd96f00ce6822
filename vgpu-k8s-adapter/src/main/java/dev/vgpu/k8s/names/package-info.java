/**
 * The names by which a cluster knows vgpu, and what a pod requests: in any supported vocabulary, it
 * becomes one request of the fleet.
 */
@NullMarked
package dev.vgpu.k8s.names;

import org.jspecify.annotations.NullMarked;
