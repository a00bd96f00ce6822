package dev.vgpu.bench.gpucheck.step;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.bench.gpucheck.machine.Findings;
import dev.vgpu.bench.gpucheck.machine.NvidiaSmi;
import dev.vgpu.bench.gpucheck.machine.Place;
import dev.vgpu.nvml.NvmlProvider;
import dev.vgpu.nvml.mig.MigDriver;
import dev.vgpu.nvml.mig.MigState;
import dev.vgpu.nvml.mig.plan.MigGeometry;
import dev.vgpu.nvml.mig.plan.MigProfile;
import dev.vgpu.request.GpuId;
import dev.vgpu.watch.PhysicalGpu;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;

/**
 * How GPUs can be divided into MIG instances according to NVML, compared with vgpu's own tables.
 * Reads only: it switches no mode and creates nothing. Differences are reported but are no failure,
 * because vgpu follows NVML.
 */
public final class MigStep implements Step {
  private static final int SLICES_OF_THE_SMALL = 4;

  @Override
  public void run(Place place, Findings findings, boolean quick) throws Exception {
    Map<GpuId, PhysicalGpu> gpus = new HashMap<>();
    new NvmlProvider().gpus().forEach(gpu -> gpus.put(gpu.id(), gpu));
    List<String> said = new ArrayList<>();
    try (MigDriver driver = MigDriver.open()) {
      List<MigState> states = driver.gpus();
      for (MigState state : states) {
        said.add(tell(place, findings, state, Optional.ofNullable(gpus.get(state.gpu()))));
      }
      if (!modes(driver.gpus()).equals(modes(states))) {
        findings.failure("MIG modes changed while they were read: %s", modes(states));
      }
    }
    Optional<NvidiaSmi> smi = NvidiaSmi.find(place.work());
    if (smi.isPresent()) {
      for (String list : List.of("-lgip", "-lgipp", "-lgi", "-lci")) {
        findings.at("nvidia_smi_mig").put(list, smi.get().text("mig", list));
      }
    }
    findings.summary("%s", String.join("; ", said));
  }

  private static Map<GpuId, String> modes(List<MigState> states) {
    Map<GpuId, String> modes = new HashMap<>();
    states.forEach(state -> modes.put(state.gpu(), state.on() + " " + state.pending()));
    return modes;
  }

  private static String tell(
      Place place, Findings findings, MigState state, Optional<PhysicalGpu> gpu) {
    ObjectNode into = findings.at("mig", state.gpu().value());
    into.put("model", state.model()).put("mode", state.on()).put("pending", state.pending());
    into.put("instances", state.instances().size());
    Optional<MigGeometry> geometry = state.geometry();
    if (geometry.isEmpty()) {
      findings.line(
          "%s, %s: it cannot be cut, or NVML does not tell how", state.gpu(), state.model());
      return "no MIG on " + state.model();
    }
    String mode = state.on() ? "on" : "off";
    findings.line("%s, %s: MIG mode is %s", state.gpu(), state.model(), mode);
    ArrayNode profiles = into.putArray("profiles");
    for (MigProfile profile : geometry.get().profiles()) {
      profiles
          .addObject()
          .put("id", profile.id())
          .put("name", profile.name())
          .put("compute_slices", profile.computeSlices())
          .put("memory_slices", profile.memorySlices())
          .put("most", profile.most())
          .put("starts", profile.starts().toString())
          .put("memory_bytes", profile.memory().bytes())
          .put("multiprocessors", profile.multiprocessors());
      findings.line(
          "  %2d  %-14s %d compute, %d memory slices at %s; at most %d; %.1f GiB, %d SMs",
          profile.id(),
          profile.name(),
          profile.computeSlices(),
          profile.memorySlices(),
          profile.starts(),
          profile.most(),
          profile.memory().bytes() / (double) (1L << 30),
          profile.multiprocessors());
    }
    if (gpu.isEmpty()) {
      return state.model() + ": no table to compare with";
    }
    int sms = place.about().path("sms").asInt(1);
    MigGeometry table =
        geometry.get().computeSlices() == SLICES_OF_THE_SMALL
            ? MigGeometry.ofFour(gpu.get().memory(), sms)
            : MigGeometry.ofSeven(gpu.get().memory(), sms);
    List<String> differences = differences(geometry.get(), table);
    ArrayNode differs = into.putArray("differs_from_table");
    differences.forEach(differs::add);
    differences.forEach(each -> findings.line("  differs from vgpu's table: %s", each));
    return String.format(
        Locale.ROOT,
        "%s: MIG %s, %d kinds, %d differences from vgpu's table",
        state.model(),
        mode,
        geometry.get().profiles().size(),
        differences.size());
  }

  /** {@return the differences between NVML's report and a table} */
  static List<String> differences(MigGeometry told, MigGeometry table) {
    List<String> differences = new ArrayList<>();
    differ(differences, "compute slices", told.computeSlices(), table.computeSlices());
    differ(differences, "memory slices", told.memorySlices(), table.memorySlices());
    for (MigProfile profile : told.profiles()) {
      Optional<MigProfile> known = table.profile(profile.id());
      String what = "profile " + profile.id() + " (" + profile.name() + ")";
      if (known.isEmpty()) {
        differences.add(what + " is not in the table");
        continue;
      }
      MigProfile row = known.get();
      differ(differences, what + " name", profile.name(), row.name());
      differ(differences, what + " compute slices", profile.computeSlices(), row.computeSlices());
      differ(differences, what + " memory slices", profile.memorySlices(), row.memorySlices());
      differ(differences, what + " places", profile.starts(), row.starts());
      differ(differences, what + " at most", profile.most(), row.most());
      differ(differences, what + " SMs", profile.multiprocessors(), row.multiprocessors());
    }
    for (MigProfile row : table.profiles()) {
      if (told.profile(row.id()).isEmpty()) {
        differences.add("profile " + row.id() + " (" + row.name() + ") of the table is not there");
      }
    }
    return differences;
  }

  private static void differ(List<String> into, String what, Object told, Object table) {
    if (!told.equals(table)) {
      into.add(what + ": NVML says " + told + ", the table " + table);
    }
  }
}
