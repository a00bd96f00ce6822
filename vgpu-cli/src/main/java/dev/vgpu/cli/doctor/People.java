package dev.vgpu.cli.doctor;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Who runs this process, by name and by home directory: as whom, and by {@code sudo} from whom. The
 * environment alone does not tell: it has neither under {@code env -i}, and root's under {@code
 * sudo}. Immutable.
 *
 * @param names of users
 * @param homes their directories
 */
record People(Set<String> names, Set<String> homes) {
  private static final List<String> NAMES = List.of("USER", "LOGNAME", "SUDO_USER", "DOAS_USER");
  private static final int HOME_FIELD = 5;

  /**
   * {@return who runs this process}
   *
   * @param environment this process's
   * @param name the name of its owner, by the system
   * @param home the directory of its owner, by the system
   * @param passwd the file of this machine's users; need not be there
   */
  static People of(Map<String, String> environment, String name, String home, Path passwd) {
    Set<String> names = new LinkedHashSet<>();
    NAMES.forEach(variable -> names.add(environment.getOrDefault(variable, "")));
    names.add(name);
    Set<String> homes = new LinkedHashSet<>();
    homes.add(withoutSlash(environment.getOrDefault("HOME", "")));
    homes.add(withoutSlash(home));
    try {
      // Any byte is a character there: a strange one in another's line is no matter.
      for (String line : Files.readAllLines(passwd, ISO_8859_1)) {
        String[] fields = line.split(":", -1);
        if (fields.length > HOME_FIELD && names.contains(fields[0])) {
          homes.add(withoutSlash(fields[HOME_FIELD]));
        }
      }
    } catch (IOException e) {
      // The users of this machine are kept elsewhere: what the environment tells must do.
    }
    names.stream().filter(each -> !each.isEmpty()).forEach(each -> homes.add("/home/" + each));
    return new People(names, homes);
  }

  private static String withoutSlash(String directory) {
    return directory.endsWith("/") ? directory.substring(0, directory.length() - 1) : directory;
  }
}
