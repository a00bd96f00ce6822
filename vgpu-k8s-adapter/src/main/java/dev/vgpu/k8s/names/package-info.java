/** What a pod asks, in whichever system's words, as one request of the fleet. */
@NullMarked
package dev.vgpu.k8s.names;

import org.jspecify.annotations.NullMarked;
