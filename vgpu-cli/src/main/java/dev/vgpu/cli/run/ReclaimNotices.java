package dev.vgpu.cli.run;

import dev.vgpu.cli.console.Console;
import dev.vgpu.cli.console.HarmlessText;
import dev.vgpu.watch.GpuEvent;
import dev.vgpu.watch.GpuListener;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** Reports on standard error what reclaim did to one virtual GPU, and why. */
final class ReclaimNotices implements GpuListener {
  private static final int KILLED_BY_SIGNAL = 128;
  private static final long NEWS_MS = 200;

  private final String virtualGpu;
  private final Console console;
  private final CountDownLatch ended = new CountDownLatch(1);

  ReclaimNotices(String virtualGpu, Console console) {
    this.virtualGpu = virtualGpu;
    this.console = console;
  }

  @Override
  public void onEvent(GpuEvent event) {
    if (!event.virtualGpu().equals(virtualGpu)) {
      return;
    }
    if (event instanceof GpuEvent.Suspended suspended) {
      say("is suspended: " + suspended.reason());
    } else if (event instanceof GpuEvent.Resumed resumed) {
      say("is resumed: " + resumed.reason());
    } else if (event instanceof GpuEvent.EndedByReclaim end) {
      say("is ended to get its memory back: " + end.reason());
      ended.countDown();
    }
  }

  private void say(String text) {
    console.err().println(HarmlessText.oneLine("vgpu: " + virtualGpu + " " + text));
    console.err().flush();
  }

  /** If a signal ended the program, waits briefly for the reason. Returns the exit code. */
  int lastWords(int exitCode) throws InterruptedException {
    if (exitCode > KILLED_BY_SIGNAL) {
      boolean ignored = ended.await(NEWS_MS, TimeUnit.MILLISECONDS);
    }
    return exitCode;
  }
}
