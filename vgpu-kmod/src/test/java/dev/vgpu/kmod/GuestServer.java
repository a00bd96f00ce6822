package dev.vgpu.kmod;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.sun.jna.Memory;
import com.sun.jna.Native;
import com.sun.jna.NativeLibrary;
import com.sun.jna.NativeLong;
import com.sun.jna.Pointer;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * A Java server of the virtual machine. Its requests allocate memory of the GPU by the driver's own
 * calls, several at a time. Each line of its input is a number of requests and their size in MiB;
 * the answer counts those that were served. After the line {@code run} with a number it has so many
 * channel groups more that run, and says how many. It ends with its input.
 */
public final class GuestServer {
  private static final int READ_WRITE = 2;
  private static final long ALLOC = 0xc020462bL;
  private static final long CONTROL = 0xc020462aL;
  private static final int SCHEDULE = 0xa06c0101;
  private static final int DEVICE = 0x5c000001;

  static {
    Native.register(NativeLibrary.getProcess());
  }

  private final int file = open("/dev/nvidiactl", READ_WRITE);
  private final int card = open("/dev/nvidia0", READ_WRITE);
  private int objects = 100;

  private GuestServer() {}

  private static native int open(String path, int flags);

  private static native int ioctl(int file, NativeLong request, Pointer argument);

  /**
   * Serves.
   *
   * @param arguments none
   */
  public static void main(String[] arguments) throws Exception {
    GuestServer server = new GuestServer();
    int client = server.made(0, 0, 0, 0x41, 0);
    int device = server.made(client, client, DEVICE, 0x80, 0);
    if (client == 0 || device == 0 || server.card < 0) {
      throw new IllegalStateException("no client of the driver: client=" + client);
    }
    ExecutorService threads = Executors.newFixedThreadPool(4);
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in, UTF_8));
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      String[] words = line.split(" ", 2);
      if (words[0].equals("run")) {
        System.out.println("runs " + server.runs(client, Integer.parseInt(words[1])));
        continue;
      }
      long bytes = Long.parseLong(words[1]) << 20;
      List<Future<Integer>> requests = new ArrayList<>();
      for (int i = 0; i < Integer.parseInt(words[0]); i++) {
        int handle = server.objects++;
        requests.add(threads.submit(() -> server.made(client, DEVICE, handle, 0x40, bytes)));
      }
      int served = 0;
      for (Future<Integer> request : requests) {
        served += request.get() == 0 ? 0 : 1;
      }
      System.out.println("served " + served);
    }
    threads.shutdown();
  }

  /** {@return how many of so many new channel groups, each with a channel, have been scheduled} */
  private int runs(int client, int groups) {
    int running = 0;
    for (int i = 0; i < groups; i++) {
      int group = made(client, DEVICE, objects++, 0xa06c, 0);
      int channel = made(client, group, objects++, 0xc86f, 0);
      running += channel != 0 && scheduled(client, group) ? 1 : 0;
    }
    return running;
  }

  private boolean scheduled(int client, int group) {
    try (Memory call = new Memory(32);
        Memory params = new Memory(8)) {
      call.clear();
      params.clear();
      params.setByte(0, (byte) 1);
      call.setInt(0, client);
      call.setInt(4, group);
      call.setInt(8, SCHEDULE);
      call.setPointer(16, params);
      call.setInt(24, 2);
      call.setInt(28, -1);
      return ioctl(file, new NativeLong(CONTROL, true), call) == 0 && call.getInt(28) == 0;
    }
  }

  /** {@return the new object's handle; 0 if the driver refused it} */
  private int made(int client, int parent, int handle, int number, long bytes) {
    try (Memory call = new Memory(32);
        Memory params = new Memory(128)) {
      call.clear();
      params.clear();
      params.setLong(64, bytes);
      call.setInt(0, client);
      call.setInt(4, parent);
      call.setInt(8, handle);
      call.setInt(12, number);
      call.setPointer(16, bytes == 0 ? null : params);
      call.setInt(24, bytes == 0 ? 0 : 128);
      call.setInt(28, -1);
      boolean done = ioctl(file, new NativeLong(ALLOC, true), call) == 0 && call.getInt(28) == 0;
      return done ? call.getInt(8) : 0;
    }
  }
}
