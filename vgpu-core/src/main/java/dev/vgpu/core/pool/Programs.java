package dev.vgpu.core.pool;

import dev.vgpu.ContainerSpec;
import dev.vgpu.GpuCapacityException;
import dev.vgpu.VgpuException;
import dev.vgpu.core.discovery.InstalledBackends;
import dev.vgpu.core.discovery.ProgramTerms;
import dev.vgpu.core.disk.ProcessIdentity;
import dev.vgpu.core.node.Lease;
import dev.vgpu.request.FailureMode;
import dev.vgpu.spi.EnforcementBackend;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Programs under one virtual GPU. Thread-safe. */
final class Programs {
  private static final Logger log = LoggerFactory.getLogger(Programs.class);
  private static final Pattern REFERENCE = Pattern.compile("\\$\\{([A-Za-z_][A-Za-z0-9_]*)}");

  private final Lease lease;
  private final ReentrantLock attaching = new ReentrantLock();

  /** Set if this JVM could not be attached and the failure mode lets calls proceed without it. */
  private volatile boolean unattachable;

  Programs(Lease lease) {
    this.lease = lease;
  }

  Map<String, String> environment() {
    checkOpen();
    return substituted(terms().variables(), System.getenv());
  }

  private ProgramTerms terms() {
    ProgramTerms terms =
        lease.node().askUninterruptibly(decides -> decides.terms(lease, Optional.empty()));
    lease.markEnforced();
    return terms;
  }

  ContainerSpec containerSpec(List<EnforcementBackend> backends) {
    checkOpen();
    ProgramTerms terms = terms();
    return InstalledBackends.containerSpec(
        backends, terms.with(substituted(terms.variables(), Map.of())));
  }

  Process start(ProcessBuilder program, Supplier<List<EnforcementBackend>> backends)
      throws IOException {
    checkOpen();
    Map<String, String> variables = Map.of();
    List<String> launcher = List.of();
    Optional<Path> path = path(program);
    try {
      ProgramTerms terms = lease.node().askUninterruptibly(decides -> decides.terms(lease, path));
      if (terms.unchecked() && path.isPresent()) {
        InstalledBackends.check(backends.get(), terms, path.get());
      }
      variables = terms.variables();
      launcher = terms.launcher();
      lease.markEnforced();
    } catch (GpuCapacityException e) {
      throw e; // held back: must not run outside the lease, whatever the failure mode
    } catch (VgpuException e) {
      if (lease.request().failureMode() == FailureMode.REFUSE) {
        throw e;
      }
      log.warn("a program is started without its virtual GPU: id={}", lease.id, e);
    }
    program.environment().putAll(substituted(variables, program.environment()));
    Process process = launcher.isEmpty() ? program.start() : launched(program, launcher, path);
    ProcessIdentity identity = ProcessIdentity.of(process);
    Lease ignored =
        lease
            .node()
            .askUninterruptibly(
                decides -> {
                  decides.started(lease, identity);
                  return lease;
                });
    return process;
  }

  /** Starts a program by a launcher. The caller's builder keeps its command. */
  private static Process launched(
      ProcessBuilder program, List<String> launcher, Optional<Path> path) throws IOException {
    List<String> own = program.command();
    Path file =
        path.filter(Files::isExecutable)
            .orElseThrow(() -> new IOException("cannot run this program: " + own));
    List<String> words = new ArrayList<>(launcher);
    words.add(file.toString());
    words.addAll(own.subList(1, own.size()));
    try {
      return program.command(words).start();
    } finally {
      program.command(own);
    }
  }

  void attachThisJvm(List<EnforcementBackend> backends) {
    attaching.lock();
    try {
      if (lease.isAttached()) {
        throw new IllegalStateException(
            "this JVM is under the virtual GPU already: id=" + lease.id);
      }
      attach(backends);
    } finally {
      attaching.unlock();
    }
  }

  /**
   * Attaches this JVM to the lease if it runs under another lease of the node: then its calls under
   * every lease must be enforced.
   */
  void followThisJvm(Supplier<List<EnforcementBackend>> backends) {
    if (!lease.node().isJvmAttached() || lease.isAttached() || lease.isClosed()) {
      return;
    }
    attaching.lock();
    try {
      if (!lease.isAttached() && !unattachable) {
        attach(backends.get());
      }
    } catch (VgpuException e) {
      if (lease.request().failureMode() == FailureMode.REFUSE) {
        throw e;
      }
      unattachable = true;
      log.warn("calls are made without their virtual GPU: id={}", lease.id, e);
    } finally {
      attaching.unlock();
    }
  }

  private void attach(List<EnforcementBackend> backends) {
    checkOpen();
    ProgramTerms terms = terms();
    lease.attached(
        InstalledBackends.attachThisProcess(
            backends, terms.with(substituted(terms.variables(), System.getenv()))));
    lease.node().markJvmAttached();
    Lease ignored =
        lease
            .node()
            .askUninterruptibly(
                decides -> {
                  decides.attached(lease);
                  return lease;
                });
  }

  /** The executable to be started; empty if it is not found, which {@code start} then reports. */
  static Optional<Path> path(ProcessBuilder program) {
    String name = program.command().isEmpty() ? "" : program.command().get(0);
    File directory = program.directory();
    if (name.indexOf('/') >= 0) {
      Path path = directory == null ? Path.of(name) : directory.toPath().resolve(name);
      return Optional.of(path.toAbsolutePath());
    }
    // The JDK searches for a bare name in this process's PATH, not in the program's.
    for (String each : System.getenv().getOrDefault("PATH", "").split(":", -1)) {
      Path path = Path.of(each.isEmpty() ? "." : each).resolve(name).toAbsolutePath();
      if (!name.isEmpty() && Files.isExecutable(path) && !Files.isDirectory(path)) {
        return Optional.of(path);
      }
    }
    return Optional.empty();
  }

  private void checkOpen() {
    if (lease.isClosed()) {
      throw new IllegalStateException("the virtual GPU is closed: id=" + lease.id);
    }
  }

  /** Replaces references to variables by their values in the program's own environment. */
  static Map<String, String> substituted(Map<String, String> variables, Map<String, String> own) {
    Map<String, String> all = new LinkedHashMap<>();
    variables.forEach(
        (name, value) -> {
          StringBuilder text = new StringBuilder();
          Matcher matcher = REFERENCE.matcher(value);
          while (matcher.find()) {
            String referred = own.getOrDefault(matcher.group(1), "");
            matcher.appendReplacement(text, Matcher.quoteReplacement(referred));
          }
          all.put(name, matcher.appendTail(text).toString());
        });
    return all;
  }
}
