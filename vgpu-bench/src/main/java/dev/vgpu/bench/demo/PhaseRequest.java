package dev.vgpu.bench.demo;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.bench.demo.figure.Phase;
import dev.vgpu.bench.demo.figure.SixModels;

/** The body of {@code POST /demo/phase}, which tells the server what to run in a phase. */
final class PhaseRequest {
  private static final int MEMORY_MIB = 512;
  private static final int SIX_MODELS_MEMORY_MIB = 256;
  private static final int SIX_MODELS_CALLS = 2;
  private static final int WORKERS = 2;

  private PhaseRequest() {}

  static ObjectNode of(Phase phase) {
    ObjectNode json = JsonNodeFactory.instance.objectNode();
    boolean shares =
        phase == Phase.VGPU
            || phase == Phase.FIXED_SHARE
            || phase == Phase.BURST_SHARE
            || phase == Phase.SIX_MODELS;
    json.put("name", phase.id()).put("sharing", shares ? "vgpu" : "none");
    json.putArray("models");
    json.putArray("offline");
    switch (phase) {
      case ONLINE_ALONE -> addOnline(json);
      case OFFLINE_ALONE -> addCorpus(json);
      case UNCONTROLLED, VGPU -> {
        addOnline(json);
        addCorpus(json);
      }
      case FIXED_SHARE, BURST_SHARE -> {
        addOffline(json, "offline-75", phase.name(), 75);
        addOffline(json, "offline-25", phase.name(), 25);
      }
      case SIX_MODELS -> SixModels.MODELS.forEach(model -> addModel(json, model));
    }
    return json;
  }

  private static void addOnline(ObjectNode json) {
    tenant(json, "models", "online", "ONLINE", "BEST_EFFORT", 0)
        .put("memoryMiB", MEMORY_MIB)
        .put("maxConcurrentCalls", 1);
  }

  private static void addModel(ObjectNode json, SixModels.Model model) {
    tenant(json, "models", model.name(), "ONLINE", "BURST_SHARE", model.percent())
        .put("memoryMiB", SIX_MODELS_MEMORY_MIB)
        .put("maxConcurrentCalls", SIX_MODELS_CALLS);
  }

  private static void addCorpus(ObjectNode json) {
    addOffline(json, "corpus", "BEST_EFFORT", 0);
  }

  private static void addOffline(ObjectNode json, String name, String policy, int percent) {
    tenant(json, "offline", name, "OFFLINE", policy, percent)
        .put("memoryMiB", MEMORY_MIB)
        .put("workers", WORKERS);
  }

  private static ObjectNode tenant(
      ObjectNode json,
      String list,
      String name,
      String preemptionClass,
      String policy,
      int percent) {
    return json.withArray(list)
        .addObject()
        .put("name", name)
        .put("class", preemptionClass)
        .put("policy", policy)
        .put("percent", percent);
  }
}
