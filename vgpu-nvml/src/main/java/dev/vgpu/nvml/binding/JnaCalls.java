package dev.vgpu.nvml.binding;

import com.sun.jna.Function;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Pointer;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/** The calls of {@link NativeCalls}, made with JNA. Safe for use by several threads. */
final class JnaCalls {
  private final List<NativeLibrary> libraries = new CopyOnWriteArrayList<>();

  JnaCalls() {
    // If JNA cannot be loaded, fail here, where the caller can still try something else.
    NativeLibrary.getProcess();
  }

  /** {@return a library's number: its position in the list, from 1} */
  long open(Path file) {
    NativeLibrary library = NativeLibrary.getInstance(file.toString());
    synchronized (libraries) {
      libraries.add(library);
      return libraries.size();
    }
  }

  long symbol(long library, String name) {
    try {
      NativeLibrary of = libraries.get(Math.toIntExact(library) - 1);
      return Pointer.nativeValue(of.getGlobalVariableAddress(name));
    } catch (UnsatisfiedLinkError e) {
      return 0;
    }
  }

  /** JNA passes the address of a direct buffer, as required. */
  long call(long function, Object... arguments) {
    return Function.getFunction(new Pointer(function)).invokeLong(arguments);
  }

  String textAt(long address) {
    return address == 0 ? "" : new Pointer(address).getString(0, "UTF-8");
  }
}
