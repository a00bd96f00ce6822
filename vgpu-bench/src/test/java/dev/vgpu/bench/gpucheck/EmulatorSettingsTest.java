package dev.vgpu.bench.gpucheck;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.List;
import org.junit.jupiter.api.Test;

class EmulatorSettingsTest {
  private static final String GPU =
      "\"gpu\":{\"gpu\":\"NVIDIA H200\",\"driver\":\"580.159\",\"nvml\":\"13.580.159\","
          + "\"cuda_version\":13000,\"copy_engines\":3,\"capability\":\"9.0\",\"sms\":132,"
          + "\"memory_bytes\":150754820096}";

  private static List<String> settings(String json) throws JsonProcessingException {
    return EmulatorSettings.text(new ObjectMapper().readTree(json), "gpu-check-x")
        .lines()
        .filter(line -> !line.startsWith("#"))
        .toList();
  }

  @Test
  void whatWasNotMeasuredIsLeftOut() throws JsonProcessingException {
    assertThat(settings("{" + GPU + ",\"steps\":{\"driver\":{\"state\":\"not run\"}}}"))
        .containsExactly(
            "model=NVIDIA H200",
            "memory=150754820096",
            "sms=132",
            "capability=9.0",
            "cuda=13.0",
            "copy-engines=3");
  }

  @Test
  void versionsOfNvmlAreToldAsItsOwnSettingsAre() throws JsonProcessingException {
    String text = EmulatorSettings.text(new ObjectMapper().readTree("{" + GPU + "}"), "x");
    assertThat(text)
        .contains("# export VGPU_EMULATOR_NVML=driver_version=580.159,nvml_version=13.580.159");
  }

  @Test
  void figuresOfTheDriverBecomeSettings() throws JsonProcessingException {
    String json =
        "{"
            + GPU
            + ",\"steps\":{"
            + "\"machine\":{\"figures\":{\"probe\":{\"bare\":{\"one_byte_takes\":2097152,"
            + "\"queue_depth\":1022}}}},"
            + "\"leave\":{\"figures\":{\"bare\":{\"handler\":{\"code_after_the_driver\":4}}}},"
            + "\"driver\":{\"figures\":{\"streams\":{\"bare\":{\"legacy_event_waits\":1}},\"calls\":{\"bare\":{\"is_lazy\":1,"
            + "\"launch\":{\"p50_ns\":2900},\"record_behind_launch\":{\"p50_ns\":1300},"
            + "\"query\":{\"p50_ns\":700},\"elapsed\":{\"p50_ns\":1100},"
            + "\"allocate\":{\"p50_ns\":91000}}},"
            + "\"waits\":{\"bare\":{\"pinned_mib\":512,"
            + "\"pin\":{\"took_ms\":120.5,\"longest_us\":118000}}}}},"
            + "\"shares\":{\"figures\":{\"1000 us, synced every kernel\":{\"2 bare\":"
            + "{\"switch_us\":136.3}}}},"
            + "\"rm\":{\"figures\":{\"channels\":{\"own\":{\"slice_before_us\":2048}}}},"
            + "\"charged\":{\"figures\":{\"cold\":{\"first_ms\":8.8,\"again_ms\":0.8}}},"
            + "\"quota\":{\"figures\":{\"ledger\":{\"plain\":{\"context_bytes\":545259520},"
            + "\"modules\":{\"module_bytes\":52428800},"
            + "\"thread\":{\"told_by_thread\":false}}}}}}";
    assertThat(settings(json))
        .contains(
            "context=545259520",
            "module=52428800",
            "launch-cost=2900ns",
            "record-cost=1300ns",
            "query-cost=700ns",
            "elapsed-cost=1100ns",
            "allocate-cost=91000ns",
            "pin-cost=241000000ns",
            "load=1000000ns",
            "grain=2097152",
            "queue=1022",
            "slice=2048us",
            "switch=136us",
            "legacy-events=on",
            "teardown=on",
            "lazy=on",
            "locks=on",
            "thread-pid=off");
  }
}
