/**
 * Turns for calls in this JVM, and for the tenants of several GPUs.
 *
 * <p>A tenant of several GPUs has the turn on all of them or on none ({@link
 * dev.vgpu.core.turn.GangGate}). Each GPU's scheduler divides its GPU as usual, and charges the
 * gang's use. The gang waits until every scheduler has come to it, and holds no turn meanwhile.
 * Only then it takes the turns, in the order of the GPUs. A scheduler then does not let another
 * tenant of the same level finish its turn. So the GPUs are idle only while running calls or
 * kernels end. That is charged to the gang, and its share is exact but for that ({@code
 * GangGateTest}). No two gangs wait for each other, since all take turns in the same order. The
 * wait for other tenants is bounded by patience ({@code GangGateProperties}).
 */
@NullMarked
package dev.vgpu.core.turn;

import org.jspecify.annotations.NullMarked;
