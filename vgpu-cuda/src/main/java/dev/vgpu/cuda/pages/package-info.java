/**
 * The pages that a lease's processes share with the seat: grant, report, and the memory ledger in
 * them. Data that another process can write is checked before it is used.
 */
@NullMarked
package dev.vgpu.cuda.pages;

import org.jspecify.annotations.NullMarked;
