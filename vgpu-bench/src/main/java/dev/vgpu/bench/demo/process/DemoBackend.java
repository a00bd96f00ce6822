package dev.vgpu.bench.demo.process;

import dev.vgpu.request.Capabilities;
import dev.vgpu.request.VirtualGpuRequest;

/** How the programs of the demo's second part share the emulated GPU. */
public enum DemoBackend {
  /** In turns, enforced by the CUDA hook. */
  HOOK("cuda-hook", "", 50, 30, 0, 50),
  /** As clients of MPS, which run concurrently. */
  MPS("mps", "", 40, 30, 10, 20),
  /** Each in its own MIG instance: 3, 2, 1 and 1 of 7 slices. */
  MIG("mig", ",mig=on", 42, 28, 14, 14);

  private final String backendName;
  private final String emulatorSettings;
  private final int fixed;
  private final int burst;
  private final int rest;
  private final int online;

  DemoBackend(
      String backendName, String emulatorSettings, int fixed, int burst, int rest, int online) {
    this.backendName = backendName;
    this.emulatorSettings = emulatorSettings;
    this.fixed = fixed;
    this.burst = burst;
    this.rest = rest;
    this.online = online;
  }

  /** {@return the backend's name in the pool} */
  String backendName() {
    return backendName;
  }

  /** Demands, on the demo's GPU, the cheapest capabilities that only this backend has. */
  void demand(VirtualGpuRequest.Builder request) {
    switch (this) {
      case HOOK -> request.require(Capabilities.Preemption.BETWEEN_KERNELS);
      case MPS -> request.require(Capabilities.Compute.SPATIAL);
      case MIG -> request.require(Capabilities.FaultIsolation.ISOLATED);
    }
  }

  /** {@return the emulator settings that differ from the usual ones} */
  String emulatorSettings() {
    return emulatorSettings;
  }

  /** {@return whether its tenants get their own compute units instead of turns} */
  boolean isSpatial() {
    return this != HOOK;
  }

  int percent(ProcessTenant tenant) {
    return switch (tenant) {
      case FIXED -> fixed;
      case BURST -> burst;
      case REST -> rest;
      case ONLINE -> online;
    };
  }
}
