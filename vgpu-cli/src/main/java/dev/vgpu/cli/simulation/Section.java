package dev.vgpu.cli.simulation;

import dev.vgpu.cli.console.UserException;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.snakeyaml.engine.v2.nodes.MappingNode;
import org.snakeyaml.engine.v2.nodes.Node;
import org.snakeyaml.engine.v2.nodes.NodeTuple;
import org.snakeyaml.engine.v2.nodes.ScalarNode;

/**
 * A mapping of keys to values. The reader gets each key that it knows, then calls {@link #end},
 * which fails if there is a key that was not asked for. Confined to one thread.
 */
final class Section {
  private final SourceText source;
  private final Node node;
  private final String what;
  private final Map<String, Value> values = new LinkedHashMap<>();
  private final Map<String, Node> keys = new LinkedHashMap<>();
  private final Set<String> known = new LinkedHashSet<>();

  Section(SourceText source, MappingNode node, String what) throws UserException {
    this.source = source;
    this.node = node;
    this.what = what;
    for (NodeTuple tuple : node.getValue()) {
      if (!(tuple.getKeyNode() instanceof ScalarNode key)) {
        throw source.error(tuple.getKeyNode(), "a key is not a word");
      }
      if (keys.put(key.getValue(), key) != null) {
        throw source.error(key, "'" + key.getValue() + "' stands here twice; leave one out");
      }
      values.put(key.getValue(), new Value(source, tuple.getValueNode(), key.getValue()));
    }
  }

  /** {@return the value of a key; null if it is missing} */
  @Nullable Value find(String key) {
    known.add(key);
    return values.get(key);
  }

  Value get(String key) throws UserException {
    Value value = find(key);
    if (value == null) {
      throw error("'" + key + "' is missing in " + what);
    }
    return value;
  }

  /** Fails if there is a key that the reader has not asked for. */
  void end() throws UserException {
    for (Map.Entry<String, Node> key : keys.entrySet()) {
      if (!known.contains(key.getKey())) {
        String near = nearest(key.getKey());
        throw source.error(
            key.getValue(),
            "unknown key '"
                + key.getKey()
                + "' in "
                + what
                + (near.isEmpty() ? "" : "; did you mean '" + near + "'?")
                + (near.isEmpty() ? "; known are " + String.join(", ", known) : ""));
      }
    }
  }

  UserException error(String problem) {
    return source.error(node, problem);
  }

  UserException error(String problem, Throwable cause) {
    return source.error(node, problem, cause);
  }

  private String nearest(String word) {
    String best = "";
    int least = 3;
    for (String candidate : known) {
      int distance = distance(word.toLowerCase(java.util.Locale.ROOT), candidate);
      if (distance < least) {
        least = distance;
        best = candidate;
      }
    }
    return best;
  }

  /** The Levenshtein distance: how many letters must be changed, added or removed. */
  private static int distance(String one, String other) {
    String to = other.toLowerCase(java.util.Locale.ROOT);
    int[] row = new int[to.length() + 1];
    for (int j = 0; j <= to.length(); j++) {
      row[j] = j;
    }
    for (int i = 1; i <= one.length(); i++) {
      int diagonal = row[0];
      row[0] = i;
      for (int j = 1; j <= to.length(); j++) {
        int changed = diagonal + (one.charAt(i - 1) == to.charAt(j - 1) ? 0 : 1);
        diagonal = row[j];
        row[j] = Math.min(changed, Math.min(row[j], row[j - 1]) + 1);
      }
    }
    return row[to.length()];
  }
}
