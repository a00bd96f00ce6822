/** The demo of programs as tenants, without a server. */
@NullMarked
package dev.vgpu.bench.demo.process;

import org.jspecify.annotations.NullMarked;
