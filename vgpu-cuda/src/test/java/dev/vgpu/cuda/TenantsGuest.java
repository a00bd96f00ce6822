package dev.vgpu.cuda;

import com.sun.jna.Memory;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Pointer;
import com.sun.jna.ptr.LongByReference;
import com.sun.jna.ptr.PointerByReference;
import dev.vgpu.spi.ProcessAttachment;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * A JVM under two leases. It uses CUDA on two threads, and prints one line for each thing that the
 * test checks.
 */
final class TenantsGuest {
  private static final String PTX =
      ".version 6.0\n.target sm_52\n.address_size 64\n.visible .entry vgpu_null()\n{\n ret;\n}\n";
  private static final long MIB = 1 << 20;

  private final NativeLibrary cuda = NativeLibrary.getInstance("libcuda.so.1");

  private TenantsGuest() {}

  /**
   * Runs it.
   *
   * @param arguments the first lease's variables as NAME=value, then --, then the second lease's
   * @throws Exception if it fails
   */
  public static void main(String[] arguments) throws Exception {
    Map<String, String> first = new HashMap<>();
    Map<String, String> second = new HashMap<>();
    Map<String, String> at = first;
    for (String argument : arguments) {
      if (argument.equals("--")) {
        at = second;
      } else {
        String[] parts = argument.split("=", 2);
        at.put(parts[0], parts[1]);
      }
    }
    CudaHookBackend backend = new CudaHookBackend(Map.of());
    try (ProcessAttachment a = backend.attachThisProcess(first);
        ProcessAttachment b = backend.attachThisProcess(second)) {
      new TenantsGuest().run(a, b);
    }
  }

  private void run(ProcessAttachment a, ProcessAttachment b) throws Exception {
    PointerByReference context = new PointerByReference();
    call("cuInit", 0);
    call("cuDevicePrimaryCtxRetain", context, 0);
    call("cuCtxSetCurrent", context.getValue());
    ExecutorService other = Executors.newSingleThreadExecutor();
    try {
      other.submit(() -> call("cuCtxSetCurrent", context.getValue())).get();
      memory(a, b, other);
      streams(a, b, other);
      leave(b, other);
    } finally {
      other.shutdown();
    }
  }

  private void memory(ProcessAttachment a, ProcessAttachment b, ExecutorService other)
      throws InterruptedException, ExecutionException {
    a.bindThread();
    long roomOfA = left();
    b.bindThread();
    System.out.println("quota of b " + left() / MIB + " MiB");
    System.out.println("too much " + code("cuMemAlloc_v2", new LongByReference(), left() + 1));
    LongByReference all = new LongByReference();
    call("cuMemAlloc_v2", all, left());
    System.out.println("left of b " + left());
    a.bindThread();
    System.out.println("a has all of its own " + (left() == roomOfA));
    int freed =
        other
            .submit(
                () -> {
                  a.bindThread();
                  return code("cuMemFree_v2", all.getValue());
                })
            .get();
    System.out.println(
        "freed in the scope of a " + freed + ", refunded to a " + (left() - roomOfA));
    b.bindThread();
    System.out.println("refunded to b " + left() / MIB + " MiB");
    b.unbindThread();
    System.out.println("unbound is the first's " + (left() == roomOfA));
  }

  /** Launches 40 kernels into a's stream from a thread of b, and 7 into b's own default stream. */
  private void streams(ProcessAttachment a, ProcessAttachment b, ExecutorService other)
      throws InterruptedException, ExecutionException {
    PointerByReference module = new PointerByReference();
    PointerByReference kernel = new PointerByReference();
    PointerByReference stream = new PointerByReference();
    call("cuModuleLoadData", module, text(PTX));
    call("cuModuleGetFunction", kernel, module.getValue(), "vgpu_null");
    a.bindThread();
    call("cuStreamCreate", stream, 0);
    other
        .submit(
            () -> {
              b.bindThread();
              launch(kernel.getValue(), stream.getValue(), 40);
              launch(kernel.getValue(), Pointer.NULL, 7);
              call("cuCtxSynchronize");
            })
        .get();
    call("cuStreamDestroy_v2", stream.getValue());
  }

  private void leave(ProcessAttachment b, ExecutorService other)
      throws InterruptedException, ExecutionException, IOException {
    b.close();
    int refused = other.submit(() -> code("cuMemAlloc_v2", new LongByReference(), 1L)).get();
    System.out.println("after leaving " + refused);
    try {
      b.bindThread();
    } catch (IllegalStateException e) {
      System.out.println("bind after leaving IllegalStateException");
    }
    System.out.println("left b");
    System.out.println("told " + (System.in.read() >= 0)); // the test has seen it
  }

  private void launch(Pointer kernel, Pointer stream, int count) {
    for (int i = 0; i < count; i++) {
      call("cuLaunchKernel", kernel, 1, 1, 1, 32, 1, 1, 0, stream, Pointer.NULL, Pointer.NULL);
    }
  }

  private long left() {
    LongByReference free = new LongByReference();
    call("cuMemGetInfo_v2", free, new LongByReference());
    return free.getValue();
  }

  private static Memory text(String text) {
    byte[] bytes = text.getBytes(StandardCharsets.US_ASCII);
    Memory memory = new Memory(bytes.length + 1L);
    memory.clear();
    memory.write(0, bytes, 0, bytes.length);
    return memory;
  }

  private int code(String name, Object... arguments) {
    return cuda.getFunction(name).invokeInt(arguments);
  }

  private void call(String name, Object... arguments) {
    int code = code(name, arguments);
    if (code != 0) {
      throw new IllegalStateException(name + " " + code);
    }
  }
}
