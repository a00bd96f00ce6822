package dev.vgpu.samples.inference;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;

/**
 * Loads the native code of ONNX Runtime and of the tokenizer without network access, and leaves no
 * files behind.
 *
 * <p>By default, the tokenizer's library (DJL) unpacks into {@code ~/.djl.ai}, which fails if the
 * home directory is read-only, as in many containers. ONNX Runtime leaves its directory in the
 * temporary directory. Linux allows deleting a loaded file, so here both use a directory that is
 * deleted as soon as they are loaded.
 */
final class NativeLibraries {
  private NativeLibraries() {}

  /**
   * Runs code that loads the libraries.
   *
   * @param load uses both libraries for the first time in this JVM
   * @return what {@code load} returns
   */
  static <T> T loadedBy(Callable<T> load) throws Exception {
    // Must come before the first use. DJL reports starts on EC2 to its makers, and downloads a
    // build for the installed CUDA.
    System.setProperty("OPT_OUT_TRACKING", "true");
    System.setProperty("ai.djl.offline", "true");
    if (!System.getProperty("os.name").toLowerCase(Locale.ROOT).contains("linux")) {
      return load.call();
    }
    Path directory = Files.createTempDirectory("vgpu-sample-");
    List<Path> files = new ArrayList<>();
    try {
      unpackAll(directory, files);
      return load.call();
    } finally {
      for (Path file : files) {
        Files.deleteIfExists(file);
      }
      Files.deleteIfExists(directory);
    }
  }

  private static void unpackAll(Path directory, List<Path> files) throws IOException {
    boolean arm = System.getProperty("os.arch").equals("aarch64");
    String djl = "/native/lib/linux-" + (arm ? "aarch64" : "x86_64") + "/cpu/";
    String ort = "/ai/onnxruntime/native/linux-" + (arm ? "aarch64/" : "x64/");
    Path tokenizer = unpack(djl + "libtokenizers.so", directory, files);
    System.setProperty("RUST_LIBRARY_PATH", tokenizer.toString());
    // The CUDA build of ONNX Runtime loads more files when a session asks for the device.
    if (!Resources.exists(ort + "libonnxruntime_providers_cuda.so")) {
      unpack(ort + "libonnxruntime.so", directory, files);
      unpack(ort + "libonnxruntime4j_jni.so", directory, files);
      System.setProperty("onnxruntime.native.path", directory.toString());
    }
  }

  private static Path unpack(String resource, Path directory, List<Path> files) throws IOException {
    Path file = directory.resolve(resource.substring(resource.lastIndexOf('/') + 1));
    files.add(file); // before the copy, so that an incomplete file is deleted as well
    try (InputStream in = Resources.open(resource)) {
      Files.copy(in, file);
    }
    return file;
  }
}
