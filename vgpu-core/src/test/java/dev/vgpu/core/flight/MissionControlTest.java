package dev.vgpu.core.flight;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.File;
import java.nio.file.Path;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import jdk.jfr.Recording;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.openjdk.jmc.common.IDisplayable;
import org.openjdk.jmc.common.IMCType;
import org.openjdk.jmc.common.item.IAccessorKey;
import org.openjdk.jmc.common.item.IItem;
import org.openjdk.jmc.common.item.IItemCollection;
import org.openjdk.jmc.common.item.IItemIterable;
import org.openjdk.jmc.common.item.IType;
import org.openjdk.jmc.common.unit.ContentType;
import org.openjdk.jmc.common.unit.IQuantity;
import org.openjdk.jmc.common.unit.UnitLookup;
import org.openjdk.jmc.flightrecorder.JfrLoaderToolkit;

/** The reader of JDK Mission Control shows the events with their names and units. */
class MissionControlTest {
  @TempDir private Path directory;

  private Map<String, IItem> shown() throws Exception {
    File file = directory.resolve("recording.jfr").toFile();
    try (Recording recording = new Recording()) {
      recording.start();
      FlightEventsTest.ALL.forEach(FlightEvents::record);
      FlightEvents.record("model-1", FlightEventsTest.USAGE);
      recording.stop();
      recording.dump(file.toPath());
    }
    IItemCollection all = JfrLoaderToolkit.loadEvents(file);
    return all.stream()
        .flatMap(IItemIterable::stream)
        .filter(item -> item.getType().getIdentifier().startsWith("dev.vgpu."))
        .collect(Collectors.toMap(item -> item.getType().getIdentifier(), item -> item));
  }

  private static ContentType<?> unitOf(IItem item, String field) {
    return key(item, field).getContentType();
  }

  private static IAccessorKey<?> key(IItem item, String field) {
    return keys(item)
        .filter(key -> key.getIdentifier().equals(field))
        .findFirst()
        .orElseThrow(() -> new AssertionError("no field " + field + " in " + item.getType()));
  }

  private static Stream<IAccessorKey<?>> keys(IItem item) {
    IType<?> type = item.getType();
    return type.getAccessorKeys().keySet().stream().map(key -> (IAccessorKey<?>) key);
  }

  private static String text(IItem item, String field) {
    @SuppressWarnings("unchecked")
    IType<IItem> type = (IType<IItem>) item.getType();
    Object value = type.getAccessor(key(item, field)).getMember(item);
    return value instanceof IQuantity quantity
        ? quantity.displayUsing(IDisplayable.AUTO).replace((char) 0xa0, (char) 0x20)
        : value instanceof IMCType other ? other.getFullName() : String.valueOf(value);
  }

  @Test
  void eventsHaveNamesFieldsAndUnits() throws Exception {
    Map<String, IItem> events = shown();
    assertThat(events).hasSize(FlightEventsTest.ALL.size() + 1);
    assertThat(events.values())
        .allSatisfy(item -> assertThat(item.getType().getName()).isNotBlank());
    IItem closed = events.get("dev.vgpu.Closed");
    assertThat(unitOf(closed, "gpuTime")).isEqualTo(UnitLookup.TIMESPAN);
    assertThat(text(closed, "gpuTime")).startsWith("1").endsWith("s");
    IItem acquired = events.get("dev.vgpu.Acquired");
    assertThat(acquired.getType().getName()).isEqualTo("Virtual GPU Acquired");
    assertThat(unitOf(acquired, "quota")).isEqualTo(UnitLookup.MEMORY);
    assertThat(text(acquired, "quota")).isEqualTo("3 MiB");
    assertThat(unitOf(acquired, "share")).isEqualTo(UnitLookup.PERCENTAGE);
    assertThat(text(acquired, "share")).isEqualTo("30 %");
    assertThat(text(events.get("dev.vgpu.Preempted"), "by")).isEqualTo("model-1");
  }
}
