package dev.vgpu.samples.inference;

/**
 * The command line.
 *
 * @param port 0 to 65535; 0: any free port
 * @param offline whether the offline job runs from the start
 * @param help whether only the help is wanted
 */
record ServerArguments(int port, boolean offline, boolean help) {
  static final String HELP =
      """
      Usage: inference-server [--port N] [--offline]

        --port N    listen on this port of 127.0.0.1 (default 8080; 0: any that is free)
        --offline   also embed a corpus in the background, in a loop
        --help      show this

      Prints "listening on http://127.0.0.1:PORT" when it is ready; logs go to stderr.
      POST /embed                {"texts": ["..."]} -> {"vectors": [[...]]}
      POST /models/{name}/embed  the same with another model
      GET  /models, /healthz     what is served, and what it used""";

  /**
   * Reads the command line.
   *
   * @throws IllegalArgumentException if an argument is unknown or wrong; says which
   */
  static ServerArguments parse(String... arguments) {
    int port = 8080;
    boolean offline = false;
    boolean help = false;
    for (int i = 0; i < arguments.length; i++) {
      String argument = arguments[i];
      switch (argument) {
        case "--help", "-h" -> help = true;
        case "--offline" -> offline = true;
        case "--port" -> {
          if (++i == arguments.length) {
            throw new IllegalArgumentException("--port needs a number");
          }
          port = port(arguments[i]);
        }
        default -> {
          if (!argument.startsWith("--port=")) {
            throw new IllegalArgumentException("unknown argument: '" + argument + "'");
          }
          port = port(argument.substring("--port=".length()));
        }
      }
    }
    return new ServerArguments(port, offline, help);
  }

  private static int port(String text) {
    try {
      int port = Integer.parseInt(text);
      if (port >= 0 && port <= 65_535) {
        return port;
      }
    } catch (NumberFormatException e) {
      // reported below
    }
    throw new IllegalArgumentException("--port takes a number from 0 to 65535, not '" + text + "'");
  }
}
