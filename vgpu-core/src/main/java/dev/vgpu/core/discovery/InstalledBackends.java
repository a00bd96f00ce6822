package dev.vgpu.core.discovery;

import dev.vgpu.ContainerSpec;
import dev.vgpu.VgpuException;
import dev.vgpu.backend.BackendStatus;
import dev.vgpu.spi.EnforcementBackend;
import dev.vgpu.spi.ProcessAttachment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.ServiceLoader;

/** The backends installed in this process. The process that holds the seat may have others. */
public final class InstalledBackends {
  private InstalledBackends() {}

  /** {@return all installed backends} */
  public static List<EnforcementBackend> load() {
    return Installed.of(
        EnforcementBackend.class, in -> ServiceLoader.load(EnforcementBackend.class, in));
  }

  /** Puts this process under a lease. The last backend in the lease's stack does it. */
  public static ProcessAttachment attachThisProcess(
      List<EnforcementBackend> of, ProgramTerms terms) {
    List<EnforcementBackend> stack = stack(of, terms, "this JVM");
    return stack.get(stack.size() - 1).attachThisProcess(terms.variables());
  }

  /** Checks whether a program can be put under a lease at all. */
  public static void check(List<EnforcementBackend> of, ProgramTerms terms, Path program) {
    stack(of, terms, "a program").forEach(backend -> backend.check(program));
  }

  /**
   * What a container needs in order to run under a lease: the specs of all its backends, merged.
   */
  public static ContainerSpec containerSpec(List<EnforcementBackend> of, ProgramTerms terms) {
    List<EnforcementBackend> stack = stack(of, terms, "a container");
    if (stack.size() == 1) {
      return stack.get(0).containerSpec(terms.variables());
    }
    ContainerSpec.Builder all = ContainerSpec.builder();
    for (EnforcementBackend backend : stack) {
      ContainerSpec spec = backend.containerSpec(terms.variables());
      spec.environment().forEach(all::variable);
      spec.mounts().forEach(all::mount);
      spec.devices().forEach(all::device);
    }
    return all.build();
  }

  private static List<EnforcementBackend> stack(
      List<EnforcementBackend> of, ProgramTerms terms, String what) {
    List<String> reasons = new ArrayList<>();
    List<EnforcementBackend> stack = new ArrayList<>();
    for (String name : terms.backends()) {
      for (EnforcementBackend backend : of) {
        if (backend.name().equals(name)) {
          BackendStatus status = backend.status();
          if (status.isAvailable()) {
            stack.add(backend);
          } else {
            reasons.add(status.toString());
          }
        }
      }
    }
    if (stack.isEmpty() || stack.size() < terms.backends().size()) {
      throw new VgpuException(
          "no backend can put "
              + what
              + " under a virtual GPU: needed="
              + terms.backends()
              + " backends="
              + (reasons.isEmpty()
                  ? "not installed: put the module of one on the class path"
                  : reasons));
    }
    return stack;
  }
}
