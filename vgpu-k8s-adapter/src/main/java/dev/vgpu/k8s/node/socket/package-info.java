/** gRPC over Unix sockets, as the kubelet speaks it. */
@NullMarked
package dev.vgpu.k8s.node.socket;

import org.jspecify.annotations.NullMarked;
