package dev.vgpu.bench.gpucheck.machine;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.TreeSet;

/** Finds NVIDIA's runtime libraries and compiler on this machine. */
public final class RuntimeLibraries {
  private static final double SECONDS = 15;
  private static final double COMPILE_SECONDS = 40;
  private static final int MOST = 2;

  /** Prints what it sees of the GPU, does some work, and waits for the end of its input. */
  private static final String SOURCE =
      """
      #include <cstdio>
      #include <cuda_runtime.h>
      __global__ void twice(float *values, int count) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < count) values[i] *= 2;
      }
      int main() {
        size_t free_bytes = 0, total = 0;
        float *values = nullptr, first = 0;
        int version = 0, count = 1 << 24;
        cudaRuntimeGetVersion(&version);
        cudaMemGetInfo(&free_bytes, &total);
        cudaMalloc(&values, count * sizeof *values);
        for (int i = 0; i < 200; i++) twice<<<count / 256, 256>>>(values, count);
        cudaMemcpy(&first, values, sizeof first, cudaMemcpyDeviceToHost);
        int code = cudaGetLastError();
        printf("{\\"version\\":%d,\\"free\\":%zu,\\"total\\":%zu,\\"works\\":%s,\\"code\\":%d}\\n", version, free_bytes,
               total, code == 0 ? "true" : "false", code);
        fflush(stdout);
        while (getchar() != EOF) {
        }
        return code;
      }
      """;

  private RuntimeLibraries() {}

  /** {@return the files of libcudart, each once, from Python's packages and from a toolkit} */
  public static List<Path> cudart(Path work) throws InterruptedException {
    List<Path> directories = new ArrayList<>();
    for (Path packages : pythonPackages(work)) {
      directories.addAll(matching(packages.resolve("nvidia"), "*").stream().toList());
    }
    directories.addAll(matching(Path.of("/usr/local"), "cuda*"));
    Collection<Path> found = new TreeSet<>();
    for (Path directory : directories) {
      for (String lib : List.of("lib", "lib64", "targets/x86_64-linux/lib")) {
        found.addAll(matching(directory.resolve(lib), "libcudart.so.[0-9]*"));
      }
    }
    found.addAll(matching(Path.of("/usr/lib/x86_64-linux-gnu"), "libcudart.so.[0-9]*"));
    return found.stream().map(RuntimeLibraries::real).distinct().limit(MOST).toList();
  }

  private static List<Path> pythonPackages(Path work) throws InterruptedException {
    String code =
        "import site; print(*site.getsitepackages(), site.getusersitepackages(), sep='\\n')";
    Done done = Done.run(List.of("python3", "-c", code), variables -> {}, work, SECONDS);
    return done.out().lines().map(Path::of).toList();
  }

  private static Path real(Path file) {
    try {
      return file.toRealPath();
    } catch (IOException e) {
      return file;
    }
  }

  private static List<Path> matching(Path directory, String glob) {
    List<Path> found = new ArrayList<>();
    if (Files.isDirectory(directory)) {
      try (DirectoryStream<Path> files = Files.newDirectoryStream(directory, glob)) {
        files.forEach(found::add);
      } catch (IOException e) {
        return List.of();
      }
    }
    return found;
  }

  /**
   * Compiles a program that links the runtime statically.
   *
   * @param nvcc the compiler
   * @param capability for example "9.0"
   * @param program the output file
   * @return how the compiler ended
   */
  public static Done compile(Path nvcc, String capability, Path work, Path program)
      throws InterruptedException {
    Path source = work.resolve("runtime_client.cu");
    try {
      Files.writeString(source, SOURCE);
    } catch (IOException e) {
      throw new UncheckedIOException("cannot write " + source, e);
    }
    return Done.run(
        List.of(
            nvcc.toString(),
            "-arch=sm_" + capability.replace(".", ""),
            "-o",
            program.toString(),
            source.toString()),
        variables -> {},
        work,
        COMPILE_SECONDS);
  }
}
