package dev.vgpu.spring;

import dev.vgpu.GpuPool;
import dev.vgpu.request.MemorySize;
import dev.vgpu.VirtualGpu;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.micrometer.VgpuMetrics;
import dev.vgpu.testing.CallCost;
import io.micrometer.core.instrument.MeterRegistry;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import java.util.function.Function;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.SpringBootVersion;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;

/**
 * Measures what the starter costs: the start of a service with three models beside the same service
 * without vgpu's jars, and a call of a model's bean beside a call of a virtual GPU that the pool
 * gave. Not part of the build. Argument: the number of starts of each.
 */
public final class StarterCost {
  private static final int STARTS = 15;
  private static final int CALLS = 100_000;
  private static final String READY = "ready";
  private static final Pattern OURS = Pattern.compile(".*/vgpu-[a-z-]+(/target/classes|-[^/]*jar)");
  private static final String[] MODELS = {
    "--vgpu.models.chat.memory=256MiB",
    "--vgpu.models.chat.share=40",
    "--vgpu.models.chat.class=online",
    "--vgpu.models.ranking.memory=256MiB",
    "--vgpu.models.ranking.share=30",
    "--vgpu.models.reports.memory=256MiB",
    "--vgpu.models.reports.class=offline",
  };

  private StarterCost() {}

  /** A service; refers to nothing of vgpu. */
  @Configuration(proxyBeanMethods = false)
  @EnableAutoConfiguration
  static class Service {
    public static void main(String[] properties) {
      try (ConfigurableApplicationContext context =
          SpringApplication.run(Service.class, properties)) {
        System.out.println(context.isActive() ? READY : "not active");
      }
    }
  }

  /** Prints the figures. */
  public static void main(String[] arguments) throws Exception {
    int starts = arguments.length > 0 ? Integer.parseInt(arguments[0]) : STARTS;
    System.out.println(
        "Spring Boot " + SpringBootVersion.getVersion() + ", Java " + Runtime.version());
    compareStarts(starts);
    compareCalls();
  }

  private static void compareStarts(int count) throws IOException, InterruptedException {
    String all = System.getProperty("java.class.path");
    String withoutOurs =
        Arrays.stream(all.split(File.pathSeparator))
            .filter(entry -> !OURS.matcher(entry).matches())
            .collect(Collectors.joining(File.pathSeparator));
    List<Start> without = new ArrayList<>();
    List<Start> with = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      without.add(start(withoutOurs));
      with.add(start(all, MODELS));
    }
    compare("time", without, with, Start::ms);
    compare("processor time", without, with, Start::cpuMs);
  }

  private static void compare(
      String what, List<Start> startsWithout, List<Start> startsWith, Function<Start, Double> of) {
    List<Double> without = startsWithout.stream().map(of).toList();
    List<Double> with = startsWith.stream().map(of).toList();
    System.out.printf(
        Locale.ROOT,
        "start, %s, median of %d (least): without vgpu %.0f (%.0f) ms, with three models %.0f"
            + " (%.0f) ms: %+.0f (%+.0f) ms%n",
        what,
        with.size(),
        median(without),
        least(without),
        median(with),
        least(with),
        median(with) - median(without),
        least(with) - least(without));
  }

  /** From the start of the process until the service is ready. */
  private record Start(double ms, double cpuMs) {}

  private static Start start(String classPath, String... properties)
      throws IOException, InterruptedException {
    Path runDirectory = Files.createTempDirectory("vgpu-start");
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of("-cp", classPath, Service.class.getName()));
    command.addAll(List.of(properties));
    ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
    builder.environment().put("VGPU_RUN_DIR", runDirectory.toString());
    long beganNs = System.nanoTime();
    Process service = builder.start();
    StringBuilder said = new StringBuilder();
    Start ready = null;
    try (BufferedReader out =
        new BufferedReader(
            new InputStreamReader(service.getInputStream(), StandardCharsets.UTF_8))) {
      for (String line = out.readLine(); line != null; line = out.readLine()) {
        if (line.equals(READY)) {
          double ms = (System.nanoTime() - beganNs) / 1e6;
          Duration cpu = service.info().totalCpuDuration().orElse(Duration.ZERO);
          ready = new Start(ms, cpu.toNanos() / 1e6);
        }
        said.append(line).append('\n');
      }
    }
    if (service.waitFor() != 0 || ready == null) {
      throw new IllegalStateException(said.toString());
    }
    return ready;
  }

  private static void compareCalls() throws Exception {
    CallCost[] costs = calls(CALLS);
    System.out.println(
        "a call of the pool's virtual GPU "
            + costs[0]
            + ", of the model's bean "
            + costs[1]
            + ": more by "
            + costs[1].above(costs[0]));
  }

  /** {@return what a call of the pool's own virtual GPU costs, and one of a model's bean} */
  static CallCost[] calls(int calls) throws Exception {
    try (ConfigurableApplicationContext context =
        SpringApplication.run(
            Service.class, "--vgpu.models.m.memory=1GiB", "--vgpu.pool.scope=this-jvm")) {
      MeterRegistry registry = context.getBean(MeterRegistry.class);
      context.getBean(VgpuMetrics.class);
      VirtualGpu bean = context.getBean(VirtualGpu.class);
      VirtualGpuRequest request =
          VirtualGpuRequest.builder().name("bare").memory(MemorySize.ofGibibytes(1)).build();
      try (VirtualGpu bare = context.getBean(GpuPool.class).acquire(request)) {
        Callable<Integer> work = () -> 1;
        CallCost[] costs = CallCost.of(calls, () -> bare.call(work), () -> bean.call(work));
        if (registry.get("vgpu.wait").tag("name", "m").timer().count() < calls) {
          throw new IllegalStateException("the calls were not timed");
        }
        return costs;
      }
    }
  }

  private static double median(List<Double> values) {
    return values.stream().sorted().toList().get(values.size() / 2);
  }

  private static double least(List<Double> values) {
    return values.stream().min(Double::compare).orElseThrow();
  }
}
