/**
 * Turns for calls in this JVM, and for the tenants of several GPUs.
 *
 * <p>A tenant of several GPUs (a gang) has the turn on all of them or on none ({@link
 * dev.vgpu.core.turn.GangGate}). Each GPU's scheduler divides its GPU as usual, and charges the
 * gang's use. The gang waits until every scheduler has offered it a turn, and holds no turn
 * meanwhile. Only then does it take the turns, in the order of the GPUs. During that phase, a
 * scheduler does not let another tenant of the same level finish its turn. So GPUs are idle only
 * while running calls or kernels end. That time is charged to the gang; apart from it, the gang's
 * share is exact ({@code GangGateTest}). Two gangs never wait for each other, because all gangs
 * take turns in the same order. The wait for other tenants is bounded by the gang's patience
 * ({@code GangGateProperties}).
 */
@NullMarked
package dev.vgpu.core.turn;

import org.jspecify.annotations.NullMarked;
