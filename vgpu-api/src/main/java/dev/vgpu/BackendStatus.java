package dev.vgpu;

import static java.util.Objects.requireNonNull;

import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** Whether a provider or a backend can be used here, or why not. Immutable. */
public final class BackendStatus {
  private final String name;
  private final @Nullable String unavailableBecause;
  private final @Nullable Capabilities capabilities;
  private final List<String> notes;

  private BackendStatus(
      String name,
      @Nullable String unavailableBecause,
      @Nullable Capabilities capabilities,
      List<String> notes) {
    this.name = requireNonNull(name, "name");
    this.unavailableBecause = unavailableBecause;
    this.capabilities = capabilities;
    this.notes = List.copyOf(notes);
  }

  /**
   * {@return the status of a provider of GPUs, which enforces nothing, that is there}
   *
   * @param name the provider's name
   */
  public static BackendStatus ofAvailable(String name) {
    return new BackendStatus(name, null, null, List.of());
  }

  /**
   * {@return the status of a backend that is there}
   *
   * @param name the backend's name
   * @param capabilities the capabilities that it can enforce
   */
  public static BackendStatus ofAvailable(String name, Capabilities capabilities) {
    return new BackendStatus(name, null, requireNonNull(capabilities, "capabilities"), List.of());
  }

  /**
   * {@return the status of a backend or provider that is not there}
   *
   * @param name the provider's or backend's name
   * @param reason why not, in words, with the remedy
   */
  public static BackendStatus ofUnavailable(String name, String reason) {
    return new BackendStatus(name, requireNonNull(reason, "reason"), null, List.of());
  }

  /** {@return the provider's or backend's name} */
  public String name() {
    return name;
  }

  /** {@return whether it can be used here} */
  public boolean isAvailable() {
    return unavailableBecause == null;
  }

  /** {@return why it cannot be used; empty if it can} */
  public Optional<String> unavailableBecause() {
    return Optional.ofNullable(unavailableBecause);
  }

  /**
   * {@return the capabilities that it can enforce; empty for a provider, and for a backend that is
   * not there}
   */
  public Optional<Capabilities> capabilities() {
    return Optional.ofNullable(capabilities);
  }

  /**
   * {@return this status with further notes}
   *
   * @param notes lines for people who look for what works and what does not
   */
  public BackendStatus withNotes(List<String> notes) {
    return new BackendStatus(name, unavailableBecause, capabilities, notes);
  }

  /** {@return further notes, a line each; possibly empty} */
  public List<String> notes() {
    return notes;
  }

  /** {@return name and status in words} */
  @Override
  public String toString() {
    return name + ": " + (unavailableBecause == null ? "available" : unavailableBecause);
  }
}
