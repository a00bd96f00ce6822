/** How the roles listen over HTTP. */
@NullMarked
package dev.vgpu.k8s.http;

import org.jspecify.annotations.NullMarked;
