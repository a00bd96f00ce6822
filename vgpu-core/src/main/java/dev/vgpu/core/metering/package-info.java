/**
 * The use of virtual GPUs, kept so that it outlasts processes: the journal in the run directory,
 * and its sums. The same readings tell how much tenants slow each other.
 *
 * <p>One record is one line: a checksum and, for one virtual GPU on one GPU, the <em>sum</em> of
 * its use so far. A record has sums, not differences. So a damaged or missing record loses only its
 * own moment: the next one says the same and more. A record also has the readings behind the sums.
 * So the next holder of the seat counts on from there, neither twice nor with a gap.
 */
@NullMarked
package dev.vgpu.core.metering;

import org.jspecify.annotations.NullMarked;
