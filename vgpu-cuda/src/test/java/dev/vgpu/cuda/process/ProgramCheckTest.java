package dev.vgpu.cuda.process;

import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.VgpuException;
import dev.vgpu.testing.TestSeed;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ProgramCheckTest {
  private static final int X86_64 = 62;

  @TempDir Path directory;

  private ProgramCheck check() {
    return new ProgramCheck("amd64", directory + ":/usr/bin:/bin");
  }

  /** An ELF file with only the fields that the check reads. */
  private Path program(String name, int elfClass, int machine, String loader) throws IOException {
    ByteBuffer elf = ByteBuffer.allocate(256).order(ByteOrder.LITTLE_ENDIAN);
    elf.putInt(0, 0x464c457f).put(4, (byte) elfClass).put(5, (byte) 1);
    elf.putShort(18, (short) machine).putLong(32, 64);
    elf.putShort(54, (short) 56).putShort(56, (short) 1);
    elf.putInt(64, loader == null ? 1 : 3).putLong(64 + 8, 128);
    if (loader != null) {
      byte[] bytes = loader.getBytes(StandardCharsets.US_ASCII);
      elf.putLong(64 + 32, bytes.length + 1L).put(128, bytes);
    }
    return executable(name, elf.array());
  }

  private Path executable(String name, byte[] content) throws IOException {
    Path file = Files.write(directory.resolve(name), content);
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rwxr-xr-x"));
    return file;
  }

  private Path script(String name, String line) throws IOException {
    return executable(name, (line + "\necho hello\n").getBytes(StandardCharsets.UTF_8));
  }

  private void refused(Path program, String reason) {
    assertThatThrownBy(() -> check().run(program))
        .isInstanceOf(VgpuException.class)
        .hasMessageContaining(reason);
  }

  private void accepted(Path program) {
    assertThatCode(() -> check().run(program)).doesNotThrowAnyException();
  }

  @Test
  void ordinaryProgramsAreAccepted() throws IOException {
    accepted(program("good", 2, X86_64, "/lib64/ld-linux-x86-64.so.2"));
    accepted(Path.of("sh"));
    accepted(Path.of("/bin/sh"));
    accepted(Path.of("/no/such/program"));
    accepted(Path.of("no-such-program"));
    accepted(executable("text", "hello".getBytes(StandardCharsets.UTF_8)));
    accepted(executable("empty", new byte[0]));
  }

  @Test
  void programsThatCannotBeHookedAreRefused() throws IOException {
    refused(program("static", 2, X86_64, null), "statically linked");
    refused(program("narrow", 1, 3, "/lib/ld-linux.so.2"), "32-bit");
    refused(program("arm", 2, 183, "/lib/ld-linux-aarch64.so.1"), "another kind of machine");
    refused(program("alpine", 2, X86_64, "/lib/ld-musl-x86_64.so.1"), "musl");
    accepted(program("ld-linux-x86-64.so.2", 2, X86_64, null));
  }

  @Test
  void ofScriptsTheInterpreterCounts() throws IOException {
    Path bad = program("static", 2, X86_64, null);
    accepted(script("a.sh", "#!/bin/sh"));
    accepted(script("b.sh", "#! /usr/bin/env -S sh -e"));
    refused(script("c.sh", "#!" + bad + " -x"), "statically linked");
    refused(script("d.sh", "#!/usr/bin/env -S A=b static"), "statically linked");
    refused(script("e.sh", "#!" + directory.resolve("c.sh")), "statically linked");
    refused(Path.of("static"), "statically linked");
    accepted(script("loop.sh", "#!" + directory.resolve("loop.sh")));
  }

  @Test
  void noFileMakesItFailOtherwise() throws IOException {
    Random random = TestSeed.random();
    for (int i = 0; i < 500; i++) {
      byte[] bytes = Files.readAllBytes(program("good", 2, X86_64, "/lib64/ld.so"));
      for (int k = 0; k < 6; k++) {
        bytes[4 + random.nextInt(120)] = (byte) random.nextInt();
      }
      Path file = executable("fuzzed", bytes);
      try {
        check().run(file);
      } catch (VgpuException e) {
        // A refusal is fine too.
      }
    }
  }
}
