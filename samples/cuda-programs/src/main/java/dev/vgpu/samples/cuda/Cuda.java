package dev.vgpu.samples.cuda;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.sun.jna.Function;
import com.sun.jna.Memory;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Pointer;
import com.sun.jna.ptr.IntByReference;
import com.sun.jna.ptr.LongByReference;
import com.sun.jna.ptr.PointerByReference;
import java.io.IOException;
import java.io.InputStream;

/**
 * One device, with the driver functions that these programs need. It loads {@code libcuda.so.1} by
 * that name, as any CUDA library in a JVM does. Confined to one thread.
 */
final class Cuda implements AutoCloseable {
  private static final String LIBRARY = "libcuda.so.1";
  private static final String KERNELS = "kernels.ptx";
  private static final int BLOCK = 32;
  private static final int NON_BLOCKING = 1;
  private static final int OUT_OF_MEMORY = 2;

  private final NativeLibrary library;
  private final Function launch;
  private final Function synchronize;
  private final Function await;
  private final int device;
  private final Pointer module;

  private Cuda(NativeLibrary library, int ordinal) throws CudaException {
    this.library = library;
    this.launch = library.getFunction("cuLaunchKernel");
    this.synchronize = library.getFunction("cuCtxSynchronize");
    this.await = library.getFunction("cuStreamSynchronize");
    IntByReference handle = new IntByReference();
    PointerByReference context = new PointerByReference();
    PointerByReference loaded = new PointerByReference();
    call("cuInit", 0);
    call("cuDeviceGet", handle, ordinal);
    this.device = handle.getValue();
    call("cuDevicePrimaryCtxRetain", context, device);
    call("cuCtxSetCurrent", context.getValue());
    call("cuModuleLoadData", loaded, kernels());
    this.module = loaded.getValue();
  }

  /**
   * Opens a device.
   *
   * @param ordinal its number, from 0
   * @throws CudaException if there is no driver, or if it fails
   */
  static Cuda open(int ordinal) throws CudaException {
    try {
      return new Cuda(NativeLibrary.getInstance(LIBRARY), ordinal);
    } catch (UnsatisfiedLinkError e) {
      throw new CudaException("no CUDA driver: " + e.getMessage(), e);
    }
  }

  /** {@return a kernel of kernels.ptx} */
  Pointer kernel(String name) throws CudaException {
    PointerByReference kernel = new PointerByReference();
    call("cuModuleGetFunction", kernel, module, name);
    return kernel.getValue();
  }

  /** {@return the device's name} */
  String name() throws CudaException {
    byte[] text = new byte[128];
    call("cuDeviceGetName", text, text.length, device);
    int end = 0;
    while (end < text.length && text[end] != 0) {
      end++;
    }
    return new String(text, 0, end, UTF_8);
  }

  /** {@return memory of that size} */
  long allocate(long bytes) throws CudaException {
    LongByReference pointer = new LongByReference();
    call("cuMemAlloc_v2", pointer, bytes);
    return pointer.getValue();
  }

  /** Frees memory. */
  void free(long pointer) throws CudaException {
    call("cuMemFree_v2", pointer);
  }

  /** {@return whether memory of that size could be allocated; it is freed at once} */
  boolean tryAllocate(long bytes) throws CudaException {
    LongByReference pointer = new LongByReference();
    int error = library.getFunction("cuMemAlloc_v2").invokeInt(new Object[] {pointer, bytes});
    if (error == OUT_OF_MEMORY) {
      return false;
    }
    check("cuMemAlloc_v2", error);
    free(pointer.getValue());
    return true;
  }

  /** {@return a new stream} */
  Pointer stream() throws CudaException {
    PointerByReference stream = new PointerByReference();
    call("cuStreamCreate", stream, NON_BLOCKING);
    return stream.getValue();
  }

  /** Destroys a stream. */
  void destroy(Pointer stream) throws CudaException {
    call("cuStreamDestroy_v2", stream);
  }

  /** Waits until everything in a stream is done. */
  void synchronize(Pointer stream) throws CudaException {
    check("cuStreamSynchronize", await.invokeInt(new Object[] {stream}));
  }

  /** Launches a kernel with one 64-bit parameter on the default stream. */
  void launch(Pointer kernel, int grid, Parameter parameter) throws CudaException {
    launch(kernel, grid, parameter, Pointer.NULL);
  }

  /** Launches a kernel with one 64-bit parameter. */
  void launch(Pointer kernel, int grid, Parameter parameter, Pointer stream) throws CudaException {
    check(
        "cuLaunchKernel",
        launch.invokeInt(
            new Object[] {
              kernel, grid, 1, 1, BLOCK, 1, 1, 0, stream, parameter.pointers, Pointer.NULL
            }));
  }

  /** Waits until everything is done. */
  void synchronize() throws CudaException {
    check("cuCtxSynchronize", synchronize.invokeInt(new Object[0]));
  }

  @Override
  public void close() throws CudaException {
    call("cuModuleUnload", module);
    call("cuDevicePrimaryCtxRelease_v2", device);
  }

  private void call(String name, Object... arguments) throws CudaException {
    check(name, library.getFunction(name).invokeInt(arguments));
  }

  private void check(String call, int error) throws CudaException {
    if (error != 0) {
      PointerByReference text = new PointerByReference();
      library.getFunction("cuGetErrorName").invokeInt(new Object[] {error, text});
      Pointer name = text.getValue();
      String known = name == null ? "unknown error" : name.getString(0);
      throw new CudaException(call + ": " + known + " (" + error + ")");
    }
  }

  private static Memory kernels() {
    try (InputStream stream = Cuda.class.getResourceAsStream(KERNELS)) {
      if (stream == null) {
        throw new IllegalStateException("not on the class path: " + KERNELS);
      }
      byte[] text = stream.readAllBytes();
      Memory memory = new Memory(text.length + 1L);
      memory.write(0, text, 0, text.length);
      memory.setByte(text.length, (byte) 0);
      return memory;
    } catch (IOException e) {
      throw new IllegalStateException(KERNELS + " cannot be read", e);
    }
  }

  /** A kernel's only parameter, where the driver can read it. */
  static final class Parameter {
    private final Memory pointers = new Memory(Long.BYTES);
    private final Memory value = new Memory(Long.BYTES);

    Parameter(long value) {
      this.value.setLong(0, value);
      this.pointers.setPointer(0, this.value);
    }
  }
}
