package dev.vgpu.core.discovery;

import java.util.List;
import java.util.Map;

/**
 * What puts a program under a lease.
 *
 * @param variables of its environment; references are not replaced yet
 * @param backends the names of those that enforce it, each standing on the one before
 */
public record ProgramTerms(Map<String, String> variables, List<String> backends) {
  /** Makes one. */
  public ProgramTerms {
    variables = Map.copyOf(variables);
    backends = List.copyOf(backends);
  }

  /** The same with other variables. */
  public ProgramTerms with(Map<String, String> replaced) {
    return new ProgramTerms(replaced, backends);
  }
}
