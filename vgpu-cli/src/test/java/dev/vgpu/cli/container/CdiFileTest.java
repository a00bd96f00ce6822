package dev.vgpu.cli.container;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.vgpu.ContainerSpec;
import dev.vgpu.ContainerSpec.Access;
import dev.vgpu.ContainerSpec.Mount;
import java.io.IOException;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class CdiFileTest {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final String RIGHT =
      "{'cdiVersion':'0.6.0','kind':'vgpu.dev/gpu','devices':[{'name':'a-1','containerEdits':"
          + "{'env':['A=b'],'deviceNodes':[{'path':'/dev/n'}],"
          + "'mounts':[{'hostPath':'/x','containerPath':'/y','options':['ro']}]}}]}";

  @Test
  void saysWhatTheContainerNeeds() throws IOException {
    ContainerSpec spec =
        ContainerSpec.builder()
            .variable("VGPU_LEASE", "a-1")
            .mount(new Mount(Path.of("/h/lib.so"), Path.of("/c/lib.so"), Access.READ_ONLY))
            .mount(new Mount(Path.of("/h/report"), Path.of("/h/report"), Access.READ_WRITE))
            .device(Path.of("/dev/nvidia0"))
            .build();
    CdiFile file = CdiFile.of("a-1", spec);
    assertThat(file.device()).isEqualTo("vgpu.dev/gpu=a-1");
    assertThat(CdiRules.problems(file.content())).isEmpty();
    JsonNode edits = JSON.readTree(file.text()).path("devices").path(0).path("containerEdits");
    assertThat(edits.path("env").path(0).asText()).isEqualTo("VGPU_LEASE=a-1");
    assertThat(edits.path("deviceNodes").path(0).path("path").asText()).isEqualTo("/dev/nvidia0");
    assertThat(edits.path("mounts").path(0).path("containerPath").asText()).isEqualTo("/c/lib.so");
    assertThat(edits.path("mounts").path(0).path("options").path(0).asText()).isEqualTo("ro");
    assertThat(edits.path("mounts").path(1).path("options").path(0).asText()).isEqualTo("rw");
  }

  @Test
  void rightFileHasNoProblem() throws IOException {
    assertThat(CdiRules.problems(JSON.readTree(RIGHT.replace('\'', '"')))).isEmpty();
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      value = {
        "'0.6.0' | '2' | cdiVersion",
        "vgpu.dev/gpu | gpu | VENDOR/CLASS",
        "'a-1' | '-' | not a device's name",
        "'a-1' | 'a/1' | not a device's name",
        "'A=b' | '=b' | not NAME=VALUE",
        "'/dev/n' | 'n' | a device node",
        "'/x' | 'x' | a mount without",
        "'/y' | '' | a mount without",
        "'ro' | '' | not a mount's option",
        "'env' | 'envs' | unknown field: envs",
        "'kind' | 'kinds' | unknown field: kinds"
      })
  void whatIsWrongIsTold(String from, String to, String problem) throws IOException {
    JsonNode file = JSON.readTree(RIGHT.replace(from, to).replace('\'', '"'));
    assertThat(CdiRules.problems(file)).anyMatch(told -> told.contains(problem));
  }
}
