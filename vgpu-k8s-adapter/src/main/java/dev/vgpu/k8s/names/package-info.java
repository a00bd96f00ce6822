/** Turns what a pod requests, in any supported vocabulary, into one request of the fleet. */
@NullMarked
package dev.vgpu.k8s.names;

import org.jspecify.annotations.NullMarked;
