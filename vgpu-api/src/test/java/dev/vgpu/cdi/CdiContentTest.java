package dev.vgpu.cdi;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.ContainerSpec;
import dev.vgpu.ContainerSpec.Access;
import dev.vgpu.ContainerSpec.Mount;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;

class CdiContentTest {
  @Test
  void saysWhatTheContainersNeed() {
    ContainerSpec spec =
        ContainerSpec.builder()
            .variable("VGPU_LEASE", "a-1")
            .mount(new Mount(Path.of("/h/lib.so"), Path.of("/c/lib.so"), Access.READ_ONLY))
            .mount(new Mount(Path.of("/h/report"), Path.of("/h/report"), Access.READ_WRITE))
            .device(Path.of("/dev/nvidia0"))
            .build();
    Map<String, ContainerSpec> devices = new LinkedHashMap<>();
    devices.put("a-1", spec);
    devices.put("b", ContainerSpec.builder().build());

    assertThat(CdiContent.of(devices))
        .hasToString(
            "{cdiVersion=0.6.0, kind=vgpu.dev/gpu, devices=["
                + "{name=a-1, containerEdits={env=[VGPU_LEASE=a-1],"
                + " deviceNodes=[{path=/dev/nvidia0}], mounts=["
                + "{hostPath=/h/lib.so, containerPath=/c/lib.so,"
                + " options=[ro, nosuid, nodev, rbind, rprivate]},"
                + " {hostPath=/h/report, containerPath=/h/report,"
                + " options=[rw, nosuid, nodev, rbind, rprivate]}]}},"
                + " {name=b, containerEdits={env=[], mounts=[]}}]}");
  }
}
