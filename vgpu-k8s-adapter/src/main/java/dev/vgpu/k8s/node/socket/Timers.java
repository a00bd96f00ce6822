package dev.vgpu.k8s.node.socket;

import java.util.concurrent.ScheduledExecutorService;

/**
 * Two threads. The kubelet needs its plugins even if the API server does not answer, and a call of
 * the API server is tried for minutes.
 *
 * @param local looks after files and the kubelet's sockets periodically
 * @param remote asks the API server
 */
public record Timers(ScheduledExecutorService local, ScheduledExecutorService remote) {}
