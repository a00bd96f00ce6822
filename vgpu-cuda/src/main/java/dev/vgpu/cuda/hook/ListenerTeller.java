package dev.vgpu.cuda.hook;

import dev.vgpu.spi.EnforcedLease;
import java.util.List;
import java.util.Map;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Reports events to a lease's listener, and survives its failures. */
final class ListenerTeller {
  private static final Logger log = LoggerFactory.getLogger(ListenerTeller.class);

  private final String lease;
  private final EnforcedLease.Listener listener;

  ListenerTeller(String lease, EnforcedLease.Listener listener) {
    this.lease = lease;
    this.listener = listener;
  }

  /**
   * Reports events.
   *
   * @param events of {@link WorkWatch}
   * @param processes how many processes there are
   */
  void events(int events, int processes) {
    if ((events & WorkWatch.PROCESSES) != 0) {
      tell(() -> listener.processes(processes));
    }
    if ((events & WorkWatch.DRAINED) != 0) {
      tell(listener::drained);
    }
    if ((events & WorkWatch.WANTED) != 0) {
      tell(listener::wanted);
    }
  }

  /** Reports what is wrong with the processes' own reports. */
  void suspicions(List<String> reasons) {
    for (String reason : reasons) {
      log.warn("a report cannot be true: lease={} {}", lease, reason);
      tell(() -> listener.suspect(reason));
    }
  }

  /** Reports which leases held its processes back, and how often. */
  void yields(Map<String, Long> yields) {
    yields.forEach((by, times) -> tell(() -> listener.yielded(by, times)));
  }

  private void tell(Runnable what) {
    try {
      what.run();
    } catch (RuntimeException e) {
      log.warn("a listener failed: lease={}", lease, e);
    }
  }
}
