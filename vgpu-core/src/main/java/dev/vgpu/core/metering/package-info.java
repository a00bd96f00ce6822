/**
 * The metered use of virtual GPUs, kept beyond the life of processes: the journal in the run
 * directory, and its sums. The same readings show how much tenants slow each other down.
 *
 * <p>A record is one line: a checksum and the <em>total</em> use of one virtual GPU so far. Because
 * records hold totals, a damaged or missing record loses only its own moment: the next one includes
 * it. A record also holds the readings behind the totals. So the next holder of the seat continues
 * from there, with neither double counting nor a gap.
 */
@NullMarked
package dev.vgpu.core.metering;

import org.jspecify.annotations.NullMarked;
