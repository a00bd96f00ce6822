package dev.vgpu;

import static java.util.Objects.requireNonNull;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The variables, mounts and devices that a container needs to run under a virtual GPU. For
 * container runtimes, which cannot be started by {@link VirtualGpu#start}. Immutable.
 */
public final class ContainerSpec {
  private final Map<String, String> environment;
  private final List<Mount> mounts;
  private final List<Path> devices;

  private ContainerSpec(Builder builder) {
    this.environment = Collections.unmodifiableMap(new LinkedHashMap<>(builder.environment));
    this.mounts = List.copyOf(builder.mounts);
    this.devices = List.copyOf(builder.devices);
  }

  /** The container's access to a mount. */
  public enum Access {
    /** It may read. */
    READ_ONLY,
    /** It may read and write. */
    READ_WRITE
  }

  /**
   * A file or directory of the host that is visible in the container.
   *
   * @param hostPath its path on the host; absolute
   * @param containerPath its path in the container; absolute
   * @param access the container's access to it
   */
  public record Mount(Path hostPath, Path containerPath, Access access) {
    /** Checks that both paths are absolute. */
    public Mount {
      requireNonNull(access, "access");
      requireAbsolute(hostPath);
      requireAbsolute(containerPath);
    }
  }

  private static Path requireAbsolute(Path path) {
    if (!path.isAbsolute()) {
      throw new IllegalArgumentException("a path is not absolute: path=" + path);
    }
    return path;
  }

  /** {@return the environment variables of the container's programs} */
  public Map<String, String> environment() {
    return environment;
  }

  /** {@return the mounts, in the order in which they must be made: some are inside others} */
  public List<Mount> mounts() {
    return mounts;
  }

  /** {@return the device nodes; each has the same path in the container as on the host} */
  public List<Path> devices() {
    return devices;
  }

  /** {@return a builder, for backends} */
  public static Builder builder() {
    return new Builder();
  }

  @Override
  public String toString() {
    return "ContainerSpec[environment="
        + environment
        + ", mounts="
        + mounts
        + ", devices="
        + devices
        + "]";
  }

  /** Builds a {@link ContainerSpec}. Not safe for use by several threads. */
  public static final class Builder {
    private final Map<String, String> environment = new LinkedHashMap<>();
    private final List<Mount> mounts = new ArrayList<>();
    private final List<Path> devices = new ArrayList<>();

    private Builder() {}

    /**
     * Sets a variable.
     *
     * @param name its name
     * @param value its value
     * @return this
     */
    public Builder variable(String name, String value) {
      environment.put(requireNonNull(name, "name"), requireNonNull(value, "value"));
      return this;
    }

    /**
     * Adds a mount after the others.
     *
     * @param mount the mount
     * @return this
     */
    public Builder mount(Mount mount) {
      mounts.add(requireNonNull(mount, "mount"));
      return this;
    }

    /**
     * Adds a device node.
     *
     * @param device its path; absolute
     * @return this
     */
    public Builder device(Path device) {
      devices.add(requireAbsolute(device));
      return this;
    }

    /** {@return the specification} */
    public ContainerSpec build() {
      return new ContainerSpec(this);
    }
  }
}
