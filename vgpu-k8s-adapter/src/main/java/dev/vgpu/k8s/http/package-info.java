/** How the roles listen over HTTP, and what a failed call of the API server means. */
@NullMarked
package dev.vgpu.k8s.http;

import org.jspecify.annotations.NullMarked;
