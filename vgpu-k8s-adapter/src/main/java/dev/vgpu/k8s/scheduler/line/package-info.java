/** The line of the pods that ask the extender: who waits, who has which place, and why. */
@NullMarked
package dev.vgpu.k8s.scheduler.line;

import org.jspecify.annotations.NullMarked;
