package dev.vgpu.nvml.mig;

import dev.vgpu.VgpuException;
import dev.vgpu.nvml.NvmlProvider;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.Enforcement;
import dev.vgpu.watch.PhysicalGpu;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.mockito.Mockito;

/** A seat that creates and destroys MIG instances, in a separate process that can be killed. */
final class MigSeat {
  private MigSeat() {}

  /** A backend that does nothing beneath. */
  static Enforcement nothing() {
    return new Enforcement() {
      @Override
      public EnforcedLease prepare(
          String id,
          Path directory,
          PhysicalGpu gpu,
          VirtualGpuRequest request,
          EnforcedLease.Listener listener) {
        return Mockito.mock(EnforcedLease.class);
      }

      @Override
      public void close() {}
    };
  }

  static VirtualGpuRequest request(int mebibytes) {
    return VirtualGpuRequest.builder()
        .name("cycle")
        .memory(MemorySize.ofMebibytes(mebibytes))
        .build();
  }

  /** Makes room for half a GPU, so other leases must move. */
  private static void makeRoom(MigEnforcement enforcement, NvmlProvider provider) {
    for (PhysicalGpu gpu : provider.gpus()) {
      if (gpu.unusableAsWhole().isPresent()) {
        List<String> moved = enforcement.makeRoom(gpu, request(1_000), any -> true);
        moved.forEach(each -> System.out.println("moved " + each));
      }
    }
  }

  /** Grants and ends leases until it has completed its cycles, or is killed. */
  public static void main(String[] args) throws IOException {
    Path run = Path.of(args[0]);
    int cycles = Integer.parseInt(args[1]);
    Random random = new Random(Long.parseLong(args[2]));
    NvmlProvider provider = new NvmlProvider();
    List<Lease> leases = new ArrayList<>();
    try (MigEnforcement enforcement =
        new MigEnforcement(run, nothing(), () -> MigDriver.of(provider))) {
      // The previous seat's leases are closed: their owner is dead.
      try (var left = Files.newDirectoryStream(Files.createDirectories(run.resolve("leases")))) {
        for (Path directory : left) {
          Files.delete(directory);
        }
      }
      int done = 0;
      for (int i = 0; done < cycles; i++) {
        if (random.nextInt(4) == 0) {
          makeRoom(enforcement, provider);
        }
        boolean add = leases.isEmpty() || (leases.size() < 8 && random.nextBoolean());
        if (add) {
          leases.add(grant(run, enforcement, provider, args[2] + "-" + i, random));
          leases.removeIf(lease -> lease.enforced == null);
        } else {
          leases.remove(random.nextInt(leases.size())).close();
          System.out.println(++done);
        }
      }
      for (Lease lease : leases) {
        lease.close();
      }
      // Unclear records are decided at the second look.
      enforcement.look();
      enforcement.look();
      enforcement.look();
      System.out.println("done");
    }
  }

  private record Lease(Path directory, @org.jspecify.annotations.Nullable EnforcedLease enforced) {
    void close() throws IOException {
      if (enforced != null) {
        enforced.close();
      }
      Files.delete(directory);
    }
  }

  private static Lease grant(
      Path run, MigEnforcement enforcement, NvmlProvider provider, String id, Random random)
      throws IOException {
    List<PhysicalGpu> gpus =
        provider.gpus().stream().filter(gpu -> gpu.unusableAsWhole().isPresent()).toList();
    PhysicalGpu gpu = gpus.get(random.nextInt(gpus.size()));
    Path directory = Files.createDirectory(run.resolve("leases").resolve(id));
    try {
      EnforcedLease.Listener listener = Mockito.mock(EnforcedLease.Listener.class);
      return new Lease(
          directory,
          enforcement.prepare(
              id, directory, gpu, request(200 * (1 + random.nextInt(3))), listener));
    } catch (VgpuException e) {
      Files.delete(directory); // no place now
      return new Lease(directory, null);
    }
  }
}
