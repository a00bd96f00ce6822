/**
 * What is granted of the node's GPUs, and which requests wait: the book of the process that
 * decides.
 *
 * <p><b>The order of service.</b> Requests wait in order of class, then arrival ({@link
 * dev.vgpu.core.book.WaitingLine}); a request that was overtaken by more urgent ones {@value
 * dev.vgpu.core.schedule.UrgencyQueue#MOST_OVERTAKES} times is overtaken no more. A later request
 * may overtake only if it cannot delay the first: on a GPU that the first may not use, or where
 * enough is left for the first beside it. So the first fits as soon as it would have without the
 * requests that overtook it, whatever is given back, and when ({@code BackfillProperties}). The
 * pool does not guess how long others stay: that is not known. A resize is no request and does not
 * wait. A resize that grows may take the part that the first waits for.
 *
 * <p><b>Several GPUs.</b> A lease of {@code gpuCount} above 1 is booked on that many GPUs or on
 * none: share and quota on each. It has one gate, one directory, one grant to its processes; its
 * calls meet at the first of its GPUs. How its turns come about: {@code GangGate}.
 */
@NullMarked
package dev.vgpu.core.book;

import org.jspecify.annotations.NullMarked;
