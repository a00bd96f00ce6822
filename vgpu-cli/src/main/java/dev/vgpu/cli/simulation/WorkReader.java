package dev.vgpu.cli.simulation;

import dev.vgpu.cli.console.UserException;
import dev.vgpu.simulation.Arrivals;
import dev.vgpu.simulation.KernelTime;
import dev.vgpu.simulation.RequestShape;
import dev.vgpu.simulation.trace.Trace;
import dev.vgpu.simulation.trace.TraceFormatException;
import dev.vgpu.simulation.trace.TraceRequest;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/** Reads when a tenant's requests arrive, and what each consists of. Confined to one thread. */
final class WorkReader {
  private static final int MOST_KERNELS = 1_000_000;
  private static final double MOST_RATE = 100_000;
  private static final long USUAL_HOST_NS = 20_000;

  private final Path path;
  private final Arrivals arrivals;
  private final RequestShape shape;

  /** How many kernels a request of a trace launches. */
  private record Tokens(double base, double perContext, double perGenerated) {
    int kernels(TraceRequest request) {
      double kernels =
          base + perContext * request.contextTokens() + perGenerated * request.generatedTokens();
      return (int) Math.max(1, Math.min(MOST_KERNELS, Math.round(kernels)));
    }
  }

  private @Nullable Tokens tokens;

  WorkReader(Path path, Value arrivalsAt, @Nullable Value requestAt) throws UserException {
    this.path = path;
    Section section = requestAt == null ? null : requestAt.section("a request");
    this.shape = shape(section);
    this.arrivals = arrivals(arrivalsAt);
    if (tokens != null && requestAt != null && !(arrivals instanceof Arrivals.Recorded)) {
      throw requestAt.error("kernels by tokens are for arrivals of a trace");
    }
  }

  Arrivals arrivals() {
    return arrivals;
  }

  RequestShape shape() {
    return shape;
  }

  private RequestShape shape(@Nullable Section section) throws UserException {
    if (section == null) {
      return new RequestShape(1, 1, new KernelTime.Fixed(1_000_000), 1, USUAL_HOST_NS);
    }
    int[] kernels = kernels(section.find("kernels"));
    Value time = section.get("kernelTime");
    Value sync = section.find("sync");
    Value host = section.find("hostTime");
    section.end();
    return new RequestShape(
        kernels[0],
        kernels[1],
        kernelTime(time),
        sync == null ? MOST_KERNELS : sync(sync),
        host == null ? USUAL_HOST_NS : host.time(0));
  }

  private static int sync(Value value) throws UserException {
    return switch (value.text().toLowerCase(Locale.ROOT)) {
      case "never" -> 0;
      case "request" -> MOST_KERNELS;
      default -> value.whole(1, MOST_KERNELS);
    };
  }

  private int[] kernels(@Nullable Value value) throws UserException {
    if (value == null) {
      return new int[] {1, 1};
    }
    if (value.isScalar()) {
      int number = value.whole(1, MOST_KERNELS);
      return new int[] {number, number};
    }
    Section section = value.section("kernels");
    Value from = section.find("from");
    Value to = section.find("to");
    Value base = section.find("base");
    Value context = section.find("perContextToken");
    Value generated = section.find("perGeneratedToken");
    section.end();
    if (from != null || to != null) {
      int least = section.get("from").whole(1, MOST_KERNELS);
      int most = section.get("to").whole(1, MOST_KERNELS);
      if (most < least || base != null || context != null || generated != null) {
        throw value.error("'kernels' is not a number, from and to, or base and kernels per token");
      }
      return new int[] {least, most};
    }
    tokens =
        new Tokens(
            base == null ? 0 : base.number(0, MOST_KERNELS),
            context == null ? 0 : context.number(0, MOST_KERNELS),
            generated == null ? 0 : generated.number(0, MOST_KERNELS));
    return new int[] {1, 1};
  }

  private static KernelTime kernelTime(Value value) throws UserException {
    if (value.isScalar()) {
      return new KernelTime.Fixed(value.time(1));
    }
    Section section = value.section("a kernel time");
    Value uniform = section.find("uniform");
    Value lognormal = section.find("lognormal");
    Value mixed = section.find("mixed");
    section.end();
    if (uniform != null) {
      Section range = uniform.section("uniform");
      long fromNs = range.get("from").time(1);
      Value to = range.get("to");
      range.end();
      if (to.time(1) < fromNs) {
        throw to.error("'to' is below 'from'");
      }
      return new KernelTime.Uniform(fromNs, to.time(1));
    } else if (lognormal != null) {
      Section curve = lognormal.section("lognormal");
      long medianNs = curve.get("median").time(1);
      double sigma = curve.get("sigma").number(0, 5);
      Value most = curve.find("most");
      curve.end();
      return new KernelTime.LogNormal(
          medianNs, sigma, most == null ? 1_000 * medianNs : most.time(medianNs));
    } else if (mixed != null) {
      List<KernelTime.Part> parts = new ArrayList<>();
      for (Value part : mixed.list()) {
        Section each = part.section("a part of the mix");
        double weight = each.get("weight").number(1e-6, 1e6);
        KernelTime time = kernelTime(each.get("time"));
        each.end();
        parts.add(new KernelTime.Part(weight, time));
      }
      if (!parts.isEmpty()) {
        return new KernelTime.Mixed(parts);
      }
    }
    throw value.error("'kernelTime' is not a time, or one of uniform, lognormal, mixed");
  }

  private Arrivals arrivals(Value value) throws UserException {
    if (value.isScalar()) {
      if (value.text().equals("closedLoop")) {
        return new Arrivals.ClosedLoop(1, 0);
      }
      throw value.error("'arrivals' is not closedLoop or a section: '" + value.text() + "'");
    }
    Section section = value.section("arrivals");
    Value loop = section.find("closedLoop");
    Value poisson = section.find("poisson");
    Value interval = section.find("interval");
    Value bursts = section.find("bursts");
    Value trace = section.find("trace");
    section.end();
    int given = 0;
    for (Value each : new @Nullable Value[] {loop, poisson, interval, bursts, trace}) {
      given += each == null ? 0 : 1;
    }
    if (given != 1) {
      throw value.error(
          "'arrivals' is not exactly one of closedLoop, poisson, interval, bursts, trace");
    }
    if (loop != null) {
      Section of = loop.section("closedLoop");
      Value clients = of.find("clients");
      Value think = of.find("think");
      of.end();
      return new Arrivals.ClosedLoop(
          clients == null ? 1 : clients.whole(1, 10_000), think == null ? 0 : think.time(0));
    } else if (poisson != null) {
      Section of = poisson.section("poisson");
      double rate = of.get("rate").number(1e-6, MOST_RATE);
      of.end();
      return new Arrivals.Poisson(rate);
    } else if (trace != null) {
      return recorded(trace);
    }
    return bursts(interval, bursts);
  }

  private static Arrivals bursts(@Nullable Value interval, @Nullable Value bursts)
      throws UserException {
    if (interval != null) {
      Section of = interval.section("interval");
      long everyNs = of.get("every").time(1_000);
      Value offset = of.find("offset");
      of.end();
      return new Arrivals.Bursts(everyNs, offset == null ? 0 : offset.time(0), 1, 0);
    }
    Section of = java.util.Objects.requireNonNull(bursts).section("bursts");
    long everyNs = of.get("every").time(1_000);
    Value offset = of.find("offset");
    int size = of.get("size").whole(1, 1_000_000);
    Value spacing = of.find("spacing");
    of.end();
    long spacingNs = spacing == null ? 0 : spacing.time(0);
    if (spacing != null && (double) spacingNs * (size - 1) >= everyNs) {
      throw spacing.error("a burst is longer than the time to the next one");
    }
    return new Arrivals.Bursts(everyNs, offset == null ? 0 : offset.time(0), size, spacingNs);
  }

  private Arrivals recorded(Value value) throws UserException {
    Section of = value.section("trace");
    Value file = of.get("file");
    Value speed = of.find("speed");
    Value from = of.find("from");
    Value to = of.find("to");
    Value repeat = of.find("repeat");
    of.end();
    double factor = speed == null ? 1 : speed.number(1e-6, 1e6);
    long fromNs = from == null ? 0 : from.time(0);
    Trace trace = trace(file);
    List<TraceRequest> all = trace.requests();
    long lastNs = all.get(all.size() - 1).arrivalNs();
    long toNs = to == null ? lastNs + 1 : to.time(1);
    Tokens scale = tokens == null ? new Tokens(shape.leastKernels(), 0, 0) : tokens;
    List<Arrivals.Request> requests = new ArrayList<>();
    for (TraceRequest request : all) {
      if (request.arrivalNs() >= fromNs && request.arrivalNs() < toNs) {
        long atNs = (long) ((request.arrivalNs() - fromNs) / factor);
        requests.add(new Arrivals.Request(atNs, scale.kernels(request)));
      }
    }
    if (requests.isEmpty()) {
      throw value.error(
          "no request of the trace lies between 'from' and 'to'; it is "
              + Times.text(lastNs)
              + " long");
    }
    boolean again = repeat != null && repeat.yesOrNo();
    long lengthNs = (long) ((Math.min(toNs, lastNs + 1) - fromNs) / factor) + 1;
    return new Arrivals.Recorded(requests, again ? lengthNs : 0);
  }

  private Trace trace(Value file) throws UserException {
    String name = file.text();
    if (name.equals("conv")) {
      return Trace.Builtin.CONV.load();
    } else if (name.equals("code")) {
      return Trace.Builtin.CODE.load();
    }
    try {
      return Trace.fromFile(path.toAbsolutePath().resolveSibling(name));
    } catch (TraceFormatException e) {
      throw file.error(String.valueOf(e.getMessage()), e);
    }
  }
}
