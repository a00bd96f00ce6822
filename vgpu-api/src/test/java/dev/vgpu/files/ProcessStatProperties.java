package dev.vgpu.files;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import dev.vgpu.files.ProcessStat.Field;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;

class ProcessStatProperties {
  private static final String FIELDS =
      "S 1 42 40 34816 -1 0 7 8 9 10 11 12 13 14 20 5 1 0 4711 5 6 23 24 25 26 27 28 29 30 31 32 33"
          + " 34 35 36 37 38 2 40\n";

  /** A process chooses its name. It may look like the fields after it, in any encoding. */
  @Provide
  Arbitrary<String> hostileNames() {
    return Arbitraries.strings().withChars(")( \n\tSZ01-\u00e9\u00ff").ofMaxLength(15);
  }

  @Property
  void nameMayHoldAnything(@ForAll("hostileNames") String name) {
    ProcessStat stat = ProcessStat.of("12 (" + name + ") " + FIELDS);

    assertThat(stat.state()).isEqualTo('S');
    assertThat(stat.text(Field.GROUP)).isEqualTo("42");
    assertThat(stat.text(Field.SESSION)).isEqualTo("40");
    assertThat(stat.text(Field.TERMINAL)).isEqualTo("34816");
    assertThat(stat.number(Field.FOREGROUND_GROUP)).hasValue(-1);
    assertThat(stat.number(Field.USER_TICKS)).hasValue(11);
    assertThat(stat.number(Field.SYSTEM_TICKS)).hasValue(12);
    assertThat(stat.number(Field.NICE)).hasValue(5);
    assertThat(stat.number(Field.START)).hasValue(4711);
    assertThat(stat.text(Field.POLICY)).isEqualTo("2");
  }

  @Property(tries = 50)
  void kernelShowsTheNameAsItIs(@ForAll("hostileNames") String name) throws IOException {
    Path thread = Path.of("/proc/thread-self");
    byte[] before = Files.readAllBytes(thread.resolve("comm"));
    Files.write(thread.resolve("comm"), name.getBytes(ISO_8859_1));
    ProcessStat stat;
    try {
      stat = ProcessStat.read(thread);
    } finally {
      Files.write(
          thread.resolve("comm"), new String(before, ISO_8859_1).strip().getBytes(ISO_8859_1));
    }
    assertThat(stat.state()).isEqualTo('R');
    assertThat(stat.number(Field.START).getAsLong()).isPositive();
  }

  @Property
  void anyTextIsRead(@ForAll String text) {
    ProcessStat stat = ProcessStat.of(text);

    assertThat(stat.number(Field.POLICY).isPresent() && stat.text(Field.POLICY).isEmpty())
        .isFalse();
  }

  /** A seat reads hundreds of times a second, and its garbage delays every tenant. */
  @Example
  void readingMakesLittleGarbage() throws IOException {
    Path self = Path.of("/proc/self");
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    long least = Long.MAX_VALUE;
    for (int i = 0; i < 20; i++) { // the first ones load classes
      long before = threads.getCurrentThreadAllocatedBytes();
      assertThat(ProcessStat.read(self).number(Field.START)).isPresent();
      least = Math.min(least, threads.getCurrentThreadAllocatedBytes() - before);
    }
    assertThat(least).isLessThan(6_000);
  }

  @Example
  void whatIsMissingIsUnknown() {
    assertThat(ProcessStat.of("").state()).isEqualTo('?');
    assertThat(ProcessStat.of("12 (a)").state()).isEqualTo('?');
    ProcessStat cut = ProcessStat.of("12 (a) S 1");
    assertThat(cut.state()).isEqualTo('S');
    assertThat(cut.text(Field.START)).isEmpty();
    assertThat(cut.number(Field.START)).isEmpty();
    assertThat(ProcessStat.of("12 (a) " + FIELDS.replace("4711", "x")).number(Field.START))
        .isEmpty();
  }
}
