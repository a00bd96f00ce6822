/**
 * Turns for calls in this JVM, and for the tenants of several GPUs.
 *
 * <p>A tenant of several GPUs has the turn on all of them or on none ({@link
 * dev.vgpu.core.turn.GangGate}). Each GPU's scheduler divides its GPU as ever, and what the gang
 * used is charged on each. The gang waits until every scheduler has come to it, keeping nothing,
 * and only then takes the turns, in the order of the GPUs; a scheduler does not let another tenant
 * of the same level finish its turn then. So the GPUs are kept idle only while running calls or
 * kernels end, which is charged to the gang, and its share is exact but for that ({@code
 * GangGateTest}). No two gangs wait for each other, since all take turns in the same order; what
 * others do to be waited for is bounded by patience ({@code GangGateProperties}).
 */
@NullMarked
package dev.vgpu.core.turn;

import org.jspecify.annotations.NullMarked;
