/**
 * The book of the deciding process: what is granted of the node's GPUs, and which requests wait.
 *
 * <p><b>The order of service.</b> Requests wait in order of class, then arrival ({@link
 * dev.vgpu.core.book.WaitingLine}). A request that more urgent ones have overtaken {@value
 * dev.vgpu.core.schedule.UrgencyQueue#MOST_OVERTAKES} times is not overtaken again. A later request
 * may overtake only if it cannot delay the first one: on a GPU that the first may not use, or where
 * enough is left for the first beside it. So the first request fits as soon as it would have
 * without the requests that overtook it, whatever is given back, and whenever ({@code
 * BackfillProperties}). A more urgent request that comes later may end this: it is served before
 * the first, and may take the room that was left beside the one that overtook. On a GPU of 1000
 * MiB, 400 MiB leave room for a first request of 600 MiB, until a more urgent one takes 10 MiB of
 * it. The pool does not guess how long leases last, because it cannot know. A resize is not a
 * request and does not wait. A resize that grows a lease may take the part that the first request
 * waits for.
 *
 * <p><b>Several GPUs.</b> A lease with {@code gpuCount} above 1 is booked on that many GPUs or on
 * none, with its share and quota on each. It has one gate, one directory, and one grant to its
 * processes. Its calls are admitted at the first of its GPUs. {@code GangGate} describes how its
 * turns come about.
 */
@NullMarked
package dev.vgpu.core.book;

import org.jspecify.annotations.NullMarked;
