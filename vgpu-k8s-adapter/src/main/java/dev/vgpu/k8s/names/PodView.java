package dev.vgpu.k8s.names;

import dev.vgpu.request.MemorySize;
import io.fabric8.kubernetes.api.model.Container;
import io.fabric8.kubernetes.api.model.EnvVar;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodBuilder;
import io.fabric8.kubernetes.api.model.Quantity;
import io.fabric8.kubernetes.api.model.ResourceRequirementsBuilder;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.stream.Stream;

/** The names and values of a pod's manifest. Every number is checked when it is read. */
final class PodView {
  private static final BigDecimal LEAST_BYTES =
      BigDecimal.valueOf(MemorySize.ofMebibytes(64).bytes());
  private static final BigDecimal MOST_BYTES =
      BigDecimal.valueOf(MemorySize.ofGibibytes(1024).bytes());

  /** A number with an exponent such as 999999999 would take a gigabyte if it were written out. */
  private static final int MOST_DIGITS = 30;

  private static final int MOST_SHOWN = 64;

  private final Pod pod;
  private final Map<String, BigDecimal> amounts = new TreeMap<>();
  private final Map<String, String> askers = new TreeMap<>();

  PodView(Pod pod) {
    this.pod = pod;
    containers(pod).forEach(this::add);
    // Of the sidecars, only the one that KAI's annotations name can have a part of a GPU.
    KaiWords.container(this)
        .flatMap(name -> sidecars().filter(one -> one.getName().equals(name)).findFirst())
        .ifPresent(this::add);
  }

  /** The init containers that run beside the containers. */
  private Stream<Container> sidecars() {
    return initContainers(pod).stream().filter(PodView::isSidecar);
  }

  private static boolean isSidecar(Container early) {
    return "Always".equals(early.getRestartPolicy());
  }

  private static List<Container> initContainers(Pod pod) {
    return pod.getSpec() == null || pod.getSpec().getInitContainers() == null
        ? List.of()
        : pod.getSpec().getInitContainers();
  }

  /**
   * {@return the init containers that request anything but the node's own resources, each as a pod
   * of its own without annotations; not the sidecar that KAI's annotations name}
   */
  List<PodView> early() {
    List<String> counted =
        KaiWords.container(this).stream()
            .filter(name -> sidecars().anyMatch(one -> one.getName().equals(name)))
            .toList();
    return initContainers(pod).stream()
        .filter(one -> !counted.contains(one.getName()))
        .map(PodView::alone)
        .filter(one -> !one.askers.isEmpty())
        .toList();
  }

  /**
   * {@return the pod with all its requests of a resource in its first container, as many as
   * kube-scheduler counts; empty if at most one container requests it, and no init container}
   */
  static Optional<Pod> together(Pod pod, String resource) {
    long early = initContainers(pod).stream().filter(one -> asks(one, resource)).count();
    long all = early + containers(pod).stream().filter(one -> asks(one, resource)).count();
    if (containers(pod).isEmpty() || (early == 0 && all < 2)) {
      return Optional.empty();
    }
    Pod copy = new PodBuilder(pod).build();
    BigDecimal sum = BigDecimal.ZERO;
    for (Container one : containers(copy)) {
      sum = sum.add(take(one, resource));
    }
    BigDecimal most = sum;
    BigDecimal sidecars = BigDecimal.ZERO;
    for (Container one : initContainers(copy)) {
      BigDecimal together = sidecars.add(take(one, resource));
      most = most.max(together);
      sidecars = isSidecar(one) ? together : sidecars;
    }
    most = most.max(sum.add(sidecars));
    Container first = containers(copy).get(0);
    first.setResources(
        new ResourceRequirementsBuilder(first.getResources())
            .addToLimits(resource, new Quantity(most.toPlainString()))
            .build());
    return Optional.of(copy);
  }

  private static boolean asks(Container container, String resource) {
    Quantity amount = asked(container).get(resource);
    return amount != null && number(resource, amount.toString()).signum() > 0;
  }

  /** {@return how much a container requests, which it does no more} */
  private static BigDecimal take(Container container, String resource) {
    Quantity amount = asked(container).get(resource);
    if (amount == null) {
      return BigDecimal.ZERO;
    }
    container.setResources(
        new ResourceRequirementsBuilder(container.getResources())
            .removeFromRequests(resource)
            .removeFromLimits(resource)
            .build());
    return number(resource, amount.toString());
  }

  private static PodView alone(Container container) {
    PodView view =
        new PodView(
            new PodBuilder()
                .withNewMetadata()
                .endMetadata()
                .withNewSpec()
                .withContainers(container)
                .endSpec()
                .build());
    view.amounts.values().removeIf(one -> one.signum() == 0);
    return view;
  }

  /** {@return whether a container requests anything but the node's own resources} */
  boolean asksAny() {
    return !askers.isEmpty() || !early().isEmpty();
  }

  /** {@return whether there is such a container or sidecar} */
  boolean hasContainer(String name) {
    return Stream.concat(containers(pod).stream(), sidecars())
        .anyMatch(one -> one.getName().equals(name));
  }

  private static List<Container> containers(Pod pod) {
    return pod.getSpec() == null || pod.getSpec().getContainers() == null
        ? List.of()
        : pod.getSpec().getContainers();
  }

  private void add(Container container) {
    asked(container)
        .forEach(
            (name, quantity) -> {
              String other = askers.putIfAbsent(name, container.getName());
              if (other != null) {
                throw new PodRefusedException(
                    name
                        + " is asked by two containers, "
                        + other
                        + " and "
                        + container.getName()
                        + ": one container of a pod may use GPUs; split the pod");
              }
              amounts.put(name, number(name, quantity.toString()));
            });
  }

  /** {@return what a container requests besides the node's own resources} */
  private static Map<String, Quantity> asked(Container container) {
    Map<String, Quantity> asked = new TreeMap<>();
    if (container.getResources() == null) {
      return asked;
    }
    if (container.getResources().getRequests() != null) {
      asked.putAll(container.getResources().getRequests());
    }
    if (container.getResources().getLimits() != null) {
      asked.putAll(container.getResources().getLimits());
    }
    asked.keySet().removeIf(name -> !name.contains("/"));
    return asked;
  }

  /** {@return whether a container requests a resource} */
  boolean asks(String resource) {
    return amounts.containsKey(resource);
  }

  /** {@return the requested resources whose names begin with a prefix} */
  List<String> asked(String prefix) {
    return amounts.keySet().stream().filter(name -> name.startsWith(prefix)).toList();
  }

  /** {@return the container that requests a resource} */
  String asker(String resource) {
    return askers.getOrDefault(resource, "");
  }

  /** {@return the only container that requests any of these resources} */
  String asker(List<String> resources) {
    List<String> names = new ArrayList<>(resources.stream().map(this::asker).distinct().toList());
    names.remove("");
    if (names.size() > 1) {
      throw new PodRefusedException(
          resources
              + " are asked by several containers, "
              + names
              + ": one container of a pod may use GPUs; split the pod");
    }
    return names.isEmpty() ? containers(pod).get(0).getName() : names.get(0);
  }

  Optional<String> annotation(String name) {
    Map<String, String> all = pod.getMetadata().getAnnotations();
    return all == null ? Optional.empty() : Optional.ofNullable(all.get(name));
  }

  /** {@return the names of the annotations that begin and end so} */
  List<String> annotations(String prefix, String suffix) {
    Map<String, String> all = pod.getMetadata().getAnnotations();
    return all == null
        ? List.of()
        : all.keySet().stream()
            .filter(name -> name.startsWith(prefix) && name.endsWith(suffix))
            .sorted()
            .toList();
  }

  String namespace() {
    String name = pod.getMetadata().getNamespace();
    return name == null ? "default" : name;
  }

  Optional<String> label(String name) {
    Map<String, String> all = pod.getMetadata().getLabels();
    return all == null ? Optional.empty() : Optional.ofNullable(all.get(name));
  }

  String priorityClass() {
    String name = pod.getSpec().getPriorityClassName();
    return name == null ? "" : name;
  }

  Optional<String> environment(String container, String name) {
    return containers(pod).stream()
        .filter(one -> one.getName().equals(container) && one.getEnv() != null)
        .flatMap(one -> one.getEnv().stream())
        .filter(one -> name.equals(one.getName()) && one.getValue() != null)
        .map(EnvVar::getValue)
        .findFirst();
  }

  /** {@return the amount of a resource, or of the annotation of that name; empty if neither} */
  Optional<BigDecimal> amount(String name) {
    BigDecimal asked = amounts.get(name);
    Optional<BigDecimal> said = annotation(name).map(text -> number(name, text));
    if (asked != null && said.isPresent() && asked.compareTo(said.get()) != 0) {
      throw new PodRefusedException(
          name
              + " is "
              + asked.toPlainString()
              + " as a limit and "
              + said.get().toPlainString()
              + " as an annotation: say it once");
    }
    return asked == null ? said : Optional.of(asked);
  }

  static BigDecimal number(String name, String text) {
    BigDecimal number;
    try {
      number = Quantity.parse(text.strip()).getNumericalAmount();
    } catch (IllegalArgumentException | ArithmeticException e) {
      throw new PodRefusedException(name + " is not a number: " + shown(text));
    }
    if (Math.abs((long) number.precision() - number.scale()) > MOST_DIGITS) {
      throw new PodRefusedException(name + " is much too large or too small: " + shown(text));
    }
    return number;
  }

  private static String shown(String text) {
    return text.length() > MOST_SHOWN ? text.substring(0, MOST_SHOWN) + "..." : text;
  }

  /** {@return a whole number within bounds} */
  int whole(String name, BigDecimal amount, int least, int most, String meaning) {
    if (amount.stripTrailingZeros().scale() > 0
        || amount.compareTo(BigDecimal.valueOf(least)) < 0
        || amount.compareTo(BigDecimal.valueOf(most)) > 0) {
      throw new PodRefusedException(
          name
              + " is "
              + meaning
              + ", "
              + least
              + " to "
              + most
              + ": asked "
              + amount.toPlainString());
    }
    return amount.intValueExact();
  }

  /** {@return a share in percent; 0 if the name is absent} */
  int share(String name) {
    return amount(name).map(one -> whole(name, one, 1, 100, "percent of one GPU")).orElse(0);
  }

  /** {@return memory in a unit; zero if the name is absent} */
  MemorySize memory(String name, MemorySize unit) {
    BigDecimal count = amount(name).orElse(null);
    if (count == null) {
      return MemorySize.ZERO;
    }
    BigDecimal bytes = count.multiply(BigDecimal.valueOf(unit.bytes()));
    if (bytes.compareTo(LEAST_BYTES) < 0 || bytes.compareTo(MOST_BYTES) > 0) {
      String counts = unit.bytes() == 1 ? "bytes, as 8Gi" : "units of " + unit;
      throw new PodRefusedException(
          name
              + " counts "
              + counts
              + ": asked "
              + count.toPlainString()
              + " of them; 64MiB to 1TiB would fit, which is "
              + LEAST_BYTES
                  .divideToIntegralValue(BigDecimal.valueOf(unit.bytes()))
                  .max(BigDecimal.ONE)
                  .toPlainString()
              + " to "
              + MOST_BYTES.divideToIntegralValue(BigDecimal.valueOf(unit.bytes())).toPlainString());
    }
    return MemorySize.ofBytes(bytes.longValue());
  }
}
