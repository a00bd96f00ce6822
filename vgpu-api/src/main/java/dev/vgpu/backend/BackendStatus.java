package dev.vgpu.backend;

import static java.util.Objects.requireNonNull;

import dev.vgpu.request.Capabilities;
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
   * {@return the status of an available provider of GPUs, which enforces nothing}
   *
   * @param name the provider's name
   */
  public static BackendStatus ofAvailable(String name) {
    return new BackendStatus(name, null, null, List.of());
  }

  /**
   * {@return the status of an available backend}
   *
   * @param name the backend's name
   * @param capabilities the capabilities that it can enforce
   */
  public static BackendStatus ofAvailable(String name, Capabilities capabilities) {
    return new BackendStatus(name, null, requireNonNull(capabilities, "capabilities"), List.of());
  }

  /**
   * {@return the status of an unavailable backend or provider}
   *
   * @param name the name of the provider or backend
   * @param reason the reason, in words, with the remedy
   */
  public static BackendStatus ofUnavailable(String name, String reason) {
    return new BackendStatus(name, requireNonNull(reason, "reason"), null, List.of());
  }

  /** {@return the name of the provider or backend} */
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
   * {@return the capabilities that it can enforce; empty for a provider and for an unavailable
   * backend}
   */
  public Optional<Capabilities> capabilities() {
    return Optional.ofNullable(capabilities);
  }

  /**
   * {@return this status with the given notes instead of its own}
   *
   * @param notes lines for people who want to know what works and what does not
   */
  public BackendStatus withNotes(List<String> notes) {
    return new BackendStatus(name, unavailableBecause, capabilities, notes);
  }

  /** {@return the notes, one line each; may be empty} */
  public List<String> notes() {
    return notes;
  }

  /** {@return the name and the status, in words} */
  @Override
  public String toString() {
    return name + ": " + (unavailableBecause == null ? "available" : unavailableBecause);
  }
}
