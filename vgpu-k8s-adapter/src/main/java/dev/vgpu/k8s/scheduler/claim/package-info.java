/**
 * Gangs whose pods have ResourceClaims: a trial of the whole gang, and what their claims reserve.
 */
@NullMarked
package dev.vgpu.k8s.scheduler.claim;

import org.jspecify.annotations.NullMarked;
