package dev.vgpu.cli.web;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Checks a running dashboard with a real browser, at three sizes in both themes: every page,
 * accessibility rules, and that nothing is wider than the screen. Not part of the build, which has
 * no browser. Arguments: the URL, a directory for pictures, and the browser's program.
 */
public final class BrowserCheck {
  private static final int[][] SIZES = {{1366, 768}, {1920, 1080}, {390, 844}};
  private static final List<String> THEMES = List.of("light", "dark");

  private BrowserCheck() {}

  /** Throws an exception that names what is wrong. */
  public static void main(String[] arguments) throws Exception {
    String url = arguments[0];
    Path pictures = Files.createDirectories(Path.of(arguments[1]));
    List<String> wrong = new ArrayList<>();
    try (Chromium browser = new Chromium(arguments.length > 2 ? arguments[2] : "chromium")) {
      browser.open(url);
      browser.await("document.querySelector('.card table tbody tr')");
      double firstMs = browser.evaluate("performance.now()").asDouble();
      System.out.printf(
          java.util.Locale.ROOT, "tenants are shown after %.0f ms at most%n", firstMs);
      String tenant = browser.evaluate("document.querySelector('.shares tbody a').hash").asText();
      for (int[] size : SIZES) {
        for (String theme : THEMES) {
          browser.size(size[0], size[1]);
          browser.theme(theme);
          for (String page : List.of("#/", tenant, "#/events", "#/mig")) {
            look(browser, page, pictures, size, theme, wrong);
          }
        }
      }
    }
    if (!wrong.isEmpty()) {
      throw new IllegalStateException(String.join("\n", wrong));
    }
    System.out.println("nothing is wrong");
  }

  private static void look(
      Chromium browser, String page, Path pictures, int[] size, String theme, List<String> wrong)
      throws Exception {
    browser.evaluate("location.hash = '" + page.replace("'", "%27") + "'; scrollTo(0, 0)");
    browser.evaluate("new Promise(done => setTimeout(done, 1200))");
    String name = page.split("/", -1)[1];
    String where = (name.isEmpty() ? "gpus" : name) + "-" + size[0] + "-" + theme;
    browser.screenshot(pictures.resolve(where + ".png"));
    JsonNode found = browser.evaluate(rules());
    found.forEach(each -> wrong.add(where + ": " + each.asText()));
  }

  private static String rules() throws Exception {
    try (var in = BrowserCheck.class.getResourceAsStream("rules.js")) {
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    }
  }
}
