package dev.vgpu.bench.chaos;

import dev.vgpu.bench.harness.Answer;
import dev.vgpu.bench.harness.Child;
import java.util.ArrayList;
import java.util.List;

/** Reads how much memory each process holds, according to the GPU and according to the ledgers. */
final class Auditor {
  private final Child child;

  Auditor(Child child) {
    this.child = child;
  }

  /**
   * A process in a lease. Bytes are -1 if the ledger, or the GPU, does not know the process. The
   * GPU reports all memory of a process, whatever lease it belongs to.
   */
  record Holder(long pid, long slotBytes, long truthBytes, boolean alive) {}

  /** A lease and its processes. */
  record Lease(
      String id, long quota, long ledger, long truth, boolean revoked, List<Holder> processes) {
    long slotSum() {
      return processes.stream().mapToLong(process -> Math.max(0, process.slotBytes())).sum();
    }
  }

  /** All leases, and the largest excess of any lease over its quota so far. */
  record Audit(List<Lease> leases, long overBytes, String overLease) {
    /** The memory of a process in the ledgers of all leases that it is under. */
    long slotBytes(long pid) {
      return leases.stream()
          .flatMap(lease -> lease.processes().stream())
          .filter(process -> process.pid() == pid)
          .mapToLong(process -> Math.max(0, process.slotBytes()))
          .sum();
    }

    /** {@return how many slots a process has in a lease} */
    static long slots(Lease lease, long pid) {
      return lease.processes().stream()
          .filter(process -> process.pid() == pid && process.slotBytes() >= 0)
          .count();
    }

    /** The unused part of a lease's quota. */
    long leftBytes(String lease) {
      return leases.stream()
          .filter(each -> each.id().equals(lease))
          .mapToLong(each -> each.quota() - each.ledger())
          .findFirst()
          .orElse(0);
    }
  }

  Audit read() throws InterruptedException {
    child.tell("read");
    List<Lease> leases = new ArrayList<>();
    for (Answer answer = child.answer(); ; answer = child.answer()) {
      String line = answer.line();
      if (line.startsWith("audit ")) {
        String overLease = line.substring(line.lastIndexOf(' ') + 1);
        return new Audit(leases, answer.whole("over"), overLease);
      }
      if (line.startsWith("lease ")) {
        Answer sum = child.answer();
        leases.add(
            new Lease(
                line.substring("lease ".length()),
                sum.whole("quota"),
                sum.whole("ledger"),
                sum.whole("truth"),
                sum.whole("revoked") != 0,
                new ArrayList<>()));
      } else {
        leases
            .get(leases.size() - 1)
            .processes()
            .add(
                new Holder(
                    answer.whole("pid"),
                    answer.whole("slot_bytes"),
                    answer.whole("truth_bytes"),
                    answer.whole("alive") != 0));
      }
    }
  }
}
