package dev.vgpu.cuda.files;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.ContainerSpec.Access;
import dev.vgpu.ContainerSpec.Mount;
import dev.vgpu.cuda.layout.HookEnvironment;
import dev.vgpu.cuda.layout.ShmLayout;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ContainerFilesTest {
  @TempDir Path machine;

  private Path file(String name) throws IOException {
    Path file = machine.toRealPath().resolve(name);
    Files.createDirectories(file.getParent());
    return Files.createFile(file);
  }

  @Test
  void theUnversionedNameOfTheDriverIsTheHook() throws IOException {
    Path hook = file("run/libvgpu_cuda.so");
    Path driver = file("lib/libcuda.so.1");
    Path compiler = file("lib/libnvidia-ptxjitcompiler.so.1");
    Path unversioned = driver.resolveSibling("libcuda.so");
    Files.createSymbolicLink(unversioned, driver);
    Files.write(file("run/leases/one/grant"), new byte[ShmLayout.GRANT_SIZE]);
    file("run/leases/one/report");
    file("dev/nvidiactl");
    file("dev/nvidia0");
    Files.writeString(
        file("proc/gpus/0000:01:00.0/information"), "GPU UUID: GPU-a1\nDevice Minor: 0\n");
    DeviceNodes nodes = new DeviceNodes(machine.resolve("dev"), machine.resolve("proc"));

    var spec =
        new ContainerFiles(
                Map.of(
                    "LD_PRELOAD",
                    hook + ":${LD_PRELOAD}",
                    HookEnvironment.VGPU_RUN_DIR,
                    machine.toRealPath().resolve("run").toString(),
                    HookEnvironment.VGPU_LEASE,
                    "one",
                    "CUDA_VISIBLE_DEVICES",
                    "GPU-a1",
                    HookEnvironment.VGPU_CUDA_DRIVER,
                    driver.toString()),
                nodes)
            .spec();

    assertThat(spec.mounts())
        .contains(
            new Mount(hook, unversioned, Access.READ_ONLY),
            new Mount(driver, driver, Access.READ_ONLY),
            new Mount(compiler, compiler, Access.READ_ONLY));
    assertThat(spec.mounts().stream().filter(mount -> mount.containerPath().equals(unversioned)))
        .hasSize(1);
  }
}
