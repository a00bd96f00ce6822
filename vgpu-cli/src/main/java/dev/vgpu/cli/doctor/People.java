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
 * The users behind this process, by name and by home directory: the process's user, and the one
 * that called {@code sudo}. The environment alone does not suffice: under {@code env -i} it names
 * no user, and under {@code sudo} it names root. Immutable.
 *
 * @param names names of users
 * @param homes their home directories
 */
record People(Set<String> names, Set<String> homes) {
  private static final List<String> NAMES = List.of("USER", "LOGNAME", "SUDO_USER", "DOAS_USER");
  private static final int HOME_FIELD = 5;

  /**
   * {@return the users behind this process}
   *
   * @param environment this process's environment variables
   * @param name the name of the process's owner, from the system
   * @param home the home directory of that owner, from the system
   * @param passwd the file of this machine's users; need not exist
   */
  static People of(Map<String, String> environment, String name, String home, Path passwd) {
    Set<String> names = new LinkedHashSet<>();
    NAMES.forEach(variable -> names.add(environment.getOrDefault(variable, "")));
    names.add(name);
    Set<String> homes = new LinkedHashSet<>();
    homes.add(withoutSlash(environment.getOrDefault("HOME", "")));
    homes.add(withoutSlash(home));
    try {
      // In ISO 8859-1 every byte is a character: an odd byte in another user's line is harmless.
      for (String line : Files.readAllLines(passwd, ISO_8859_1)) {
        String[] fields = line.split(":", -1);
        if (fields.length > HOME_FIELD && names.contains(fields[0])) {
          homes.add(withoutSlash(fields[HOME_FIELD]));
        }
      }
    } catch (IOException e) {
      // The users of this machine are stored elsewhere: the environment must suffice.
    }
    names.stream().filter(each -> !each.isEmpty()).forEach(each -> homes.add("/home/" + each));
    return new People(names, homes);
  }

  private static String withoutSlash(String directory) {
    return directory.endsWith("/") ? directory.substring(0, directory.length() - 1) : directory;
  }
}
