package dev.vgpu.dashboard;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/** The current viewers, up to a limit. Safe for use by several threads. */
final class Viewers implements AutoCloseable {
  private final int most;
  private final List<Viewer> viewers = new CopyOnWriteArrayList<>();
  private boolean isClosed; // guarded by this

  Viewers(int most) {
    this.most = most;
  }

  /** {@return whether there was room for the viewer; there is none after {@link #close}} */
  synchronized boolean add(Viewer viewer) {
    if (isClosed || viewers.size() >= most) {
      return false;
    }
    viewers.add(viewer);
    return true;
  }

  void remove(Viewer viewer) {
    viewers.remove(viewer);
  }

  int count() {
    return viewers.size();
  }

  /** Offers a message to each viewer without blocking; ends viewers that have stopped reading. */
  void tell(byte[] message) {
    for (Viewer viewer : viewers) {
      viewer.offer(message);
    }
  }

  @Override
  public synchronized void close() {
    isClosed = true;
    viewers.forEach(Viewer::end);
  }
}
