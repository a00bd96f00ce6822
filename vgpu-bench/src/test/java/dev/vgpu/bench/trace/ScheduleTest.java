package dev.vgpu.bench.trace;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ScheduleTest {
  @TempDir private Path directory;

  @Test
  void slicesHoldEveryRequestOnceAtItsTimeSinceTheSlice() {
    Schedule schedule = new Schedule(List.of(at(0), at(9), at(10), at(29)), 30);
    List<Schedule> slices = schedule.slices(3);
    assertThat(slices).extracting(Schedule::lengthNs).containsExactly(10L, 10L, 10L);
    assertThat(slices.get(0).requests()).containsExactly(at(0), at(9));
    assertThat(slices.get(1).requests()).containsExactly(at(0));
    assertThat(slices.get(2).requests()).containsExactly(at(9));
  }

  @Test
  void slicesOfALengthThatDoesNotDivideLoseNothing() {
    Schedule schedule = new Schedule(List.of(at(0), at(3), at(6), at(9)), 10);
    List<Schedule> slices = schedule.slices(3);
    assertThat(slices.stream().mapToLong(Schedule::lengthNs).sum()).isEqualTo(10);
    assertThat(slices.stream().mapToInt(slice -> slice.requests().size()).sum()).isEqualTo(4);
  }

  @Test
  void requestsAreSorted() {
    assertThat(new Schedule(List.of(at(5), at(2)), 10).requests()).containsExactly(at(2), at(5));
  }

  @Test
  void arrivalAtTheEndIsRefused() {
    assertThatThrownBy(() -> new Schedule(List.of(at(10)), 10))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void fileGivesBackWhatWasWritten() throws IOException {
    Path file = directory.resolve("schedule.tsv");
    ScheduledRequest request =
        new ScheduledRequest(7, "/models/a/embed", List.of("a \"quoted\"\ttext", "naïve"));
    ScheduleFile.write(file, new Schedule(List.of(request), 10));
    assertThat(ScheduleFile.read(file))
        .singleElement()
        .satisfies(
            entry -> {
              assertThat(entry.arrivalNs()).isEqualTo(7);
              assertThat(entry.path()).isEqualTo("/models/a/embed");
              assertThat(new String(entry.body(), StandardCharsets.UTF_8))
                  .isEqualTo("{\"texts\":[\"a \\\"quoted\\\"\\ttext\",\"naïve\"]}");
            });
  }

  @Test
  void corruptFileIsRefused() throws IOException {
    Path file = Files.writeString(directory.resolve("schedule.tsv"), "1\t/embed\n");
    assertThatThrownBy(() -> ScheduleFile.read(file)).hasMessageContaining("line 1");
  }

  private static ScheduledRequest at(long arrivalNs) {
    return new ScheduledRequest(arrivalNs, "/embed", List.of("text"));
  }
}
