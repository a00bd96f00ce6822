package dev.vgpu.core.discovery;

import java.util.List;
import java.util.Map;

/**
 * What is needed to run a program under a lease.
 *
 * @param variables environment variables; references in them are not resolved yet
 * @param launcher the words to put before a program's own command; usually none
 * @param backends the names of the backends that enforce the lease, each built on the one before
 * @param unchecked whether this process must check the program itself: the seat is another user's,
 *     and opens no file that this process names
 */
public record ProgramTerms(
    Map<String, String> variables,
    List<String> launcher,
    List<String> backends,
    boolean unchecked) {
  /** Copies the collections. */
  public ProgramTerms {
    variables = Map.copyOf(variables);
    launcher = List.copyOf(launcher);
    backends = List.copyOf(backends);
  }

  /** {@return these terms with other variables} */
  public ProgramTerms with(Map<String, String> replaced) {
    return new ProgramTerms(replaced, launcher, backends, unchecked);
  }

  /** {@return these terms for a process that must check the program itself} */
  public ProgramTerms withoutCheck() {
    return new ProgramTerms(variables, launcher, backends, true);
  }
}
