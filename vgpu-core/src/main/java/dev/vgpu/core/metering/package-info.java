/**
 * What virtual GPUs use, written down so that it outlasts processes: the journal in the run
 * directory, and the sums that are made of it; and from the same readings, how much tenants slow
 * each other.
 *
 * <p>One record is one line: a checksum and, for one virtual GPU on one GPU, the <em>sum</em> of
 * all that it has used so far. Sums, not differences: a record that is damaged or was never written
 * takes nothing with it but its own moment, for the next one says the same and more. Beside the
 * sums stand the readings that they were made of, so that the next holder of the seat counts on
 * from there, neither twice nor with a gap.
 */
@NullMarked
package dev.vgpu.core.metering;

import org.jspecify.annotations.NullMarked;
