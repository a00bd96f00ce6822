/**
 * The pool: admission, leases, events, and the virtual GPUs that callers hold.
 *
 * <p><b>Who is served when.</b> Requests wait in order of class, then arrival ({@link
 * dev.vgpu.core.pool.WaitingLine}); one that was overtaken by more urgent ones {@value
 * dev.vgpu.core.schedule.UrgencyQueue#MOST_OVERTAKES} times is overtaken no more. One behind the
 * first is served before it where it cannot delay it: on a GPU that the first may not use, or where
 * of all that it takes as much is left besides as the first asks for. So whatever is given back,
 * and when, the first fits as soon as it would have without those who passed it ({@code
 * BackfillProperties}). What it needs is not guessed from how long others stay: that is not known.
 * A resize is no request and does not wait; one that grows may take what the first waits for.
 *
 * <p><b>Several GPUs.</b> A lease of {@code gpuCount} above 1 is booked on that many GPUs or on
 * none: share and quota on each. It has one gate, one directory, one grant to its processes; its
 * calls meet at the first of its GPUs. How its turns come about: {@code GangGate}.
 */
@NullMarked
package dev.vgpu.core.pool;

import org.jspecify.annotations.NullMarked;
