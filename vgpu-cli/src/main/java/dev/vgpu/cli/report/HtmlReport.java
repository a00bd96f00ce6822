package dev.vgpu.cli.report;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.Properties;
import org.jspecify.annotations.Nullable;

/** Creates a report: one HTML file that contains its styles, scripts, chart library and data. */
public final class HtmlReport {
  private static final String ECHARTS = "META-INF/resources/_static/echarts/";
  private static final String ECHARTS_VERSION = "META-INF/maven/org.mvnpm/echarts/pom.properties";

  private HtmlReport() {}

  /**
   * {@return the report, as HTML}
   *
   * @param owner a class beside which the page and its script lie, as resources; the page is its
   *     heading, in one line, and its sections
   * @param page the name of both, without {@code .html} and {@code .js}
   * @param data the input of the page's script
   */
  public static String of(Class<?> owner, String page, ObjectNode data) {
    String[] parts = resource(owner, page + ".html").split("\n", 2);
    return resource(HtmlReport.class, "report.html")
        .replace("{{page}}", page)
        .replace("{{heading}}", parts[0])
        .replace("{{sections}}", parts[1])
        .replace("{{style}}", resource(HtmlReport.class, "report.css"))
        .replace("{{data}}", inert(data.toString()))
        .replace("{{common}}", resource(HtmlReport.class, "common.js"))
        .replace("{{script}}", resource(owner, page + ".js"))
        .replace("{{echarts}}", script(charts()));
  }

  /** Equivalent JSON without any text that looks like HTML. */
  static String inert(String json) {
    return json.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026");
  }

  /** A script without any text that would close or open an HTML element. */
  static String script(String javascript) {
    return javascript.replace("</script", "<\\/script").replace("<!--", "<\\!--");
  }

  private static String charts() {
    ClassLoader loader = HtmlReport.class.getClassLoader();
    Properties properties = new Properties();
    try (InputStream stream = loader.getResourceAsStream(ECHARTS_VERSION)) {
      if (stream != null) {
        properties.load(stream);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    String path = ECHARTS + properties.getProperty("version", "unknown") + "/dist/echarts.min.js";
    return text(loader.getResourceAsStream(path), path);
  }

  private static String resource(Class<?> owner, String name) {
    return text(owner.getResourceAsStream(name), name);
  }

  private static String text(@Nullable InputStream stream, String name) {
    if (stream == null) {
      throw new IllegalStateException("not on the class path: " + name);
    }
    try (stream) {
      return new String(stream.readAllBytes(), UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
