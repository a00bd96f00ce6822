package dev.vgpu.cuda.layout;

import java.io.IOException;
import java.math.BigInteger;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * Makes Java constants of {@code vgpu_shm.def} and {@code vgpu_env.def}, the files that C includes.
 * Run by the build, as a single file: {@code java LayoutGenerator.java SHM_DEF ENV_DEF OUT}, where
 * OUT gets the Java sources and {@code vgpu_shm.txt}, the text form that the C probe prints too. It
 * refuses a layout with gaps, overlaps, misaligned fields or a name that is there twice.
 */
public final class LayoutGenerator {
  private static final Pattern ROW =
      Pattern.compile(
          "(CONST|BLOCK|FIELD|ARRAY|ENV)\\s*\\(((?:[^\"()]|\"(?:[^\"\\\\]|\\\\.)*\")*)\\)");
  private static final Pattern COMMENT = Pattern.compile("/\\*.*?\\*/", Pattern.DOTALL);
  private static final Pattern CELL = Pattern.compile("\"((?:[^\"\\\\]|\\\\.)*)\"|([^,\"]+)");
  private static final Map<String, Integer> TYPE_BYTES =
      Map.of("u8", 1, "u16", 2, "u32", 4, "i32", 4, "u64", 8, "i64", 8);
  private static final BigInteger U32_LIMIT = BigInteger.ONE.shiftLeft(32);
  private static final BigInteger U64_LIMIT = BigInteger.ONE.shiftLeft(64);

  private LayoutGenerator() {}

  /** A row of the file: its macro's name and its cells. */
  record Row(String macro, List<String> cells) {}

  /** A named number. */
  record Constant(String name, BigInteger value, String doc) {}

  /** One field of a block; {@code count} is 1 but for an array. */
  record Field(String name, String type, int count, int offset, String writer, String doc) {
    int bytes() {
      return TYPE_BYTES.get(type) * count;
    }
  }

  /** A block and its fields, in order of their offsets. */
  record Block(String name, int bytes, String doc, List<Field> fields) {}

  /** Everything that {@code vgpu_shm.def} says. */
  record Layout(List<Constant> constants, Map<String, Block> blocks) {}

  /** An environment variable. */
  record Variable(String name, String direction, String doc) {}

  /**
   * Writes what is made from the two files.
   *
   * @param arguments {@code vgpu_shm.def}, {@code vgpu_env.def}, and where the sources go
   * @throws IOException if a file cannot be read or written
   */
  public static void main(String[] arguments) throws IOException {
    if (arguments.length != 3) {
      throw new IllegalArgumentException("usage: LayoutGenerator SHM_DEF ENV_DEF OUT");
    }
    Layout layout = layout(Files.readString(Path.of(arguments[0])));
    List<Variable> variables = variables(Files.readString(Path.of(arguments[1])));
    Path directory = Path.of(arguments[2], "dev", "vgpu", "cuda", "layout");
    Files.createDirectories(directory);
    write(directory.resolve("ShmLayout.java"), shmJava(layout));
    write(directory.resolve("HookEnvironment.java"), environmentJava(variables));
    write(Path.of(arguments[2], "vgpu_shm.txt"), text(layout));
  }

  /** Leaves a file alone that says so already: a newer one would have all its users recompiled. */
  static void write(Path file, String content) throws IOException {
    if (!Files.exists(file) || !Files.readString(file).equals(content)) {
      Files.writeString(file, content);
    }
  }

  static Layout layout(String source) {
    List<Constant> constants = new ArrayList<>();
    Map<String, Block> blocks = new LinkedHashMap<>();
    Set<String> names = new HashSet<>();
    for (Row row : rows(source)) {
      List<String> cells = row.cells();
      switch (row.macro()) {
        case "CONST" -> {
          expect(row, 3);
          unique(names, cells.get(0));
          constants.add(new Constant(cells.get(0), number(cells.get(1)), cells.get(2)));
        }
        case "BLOCK" -> {
          expect(row, 3);
          unique(names, "block " + cells.get(0));
          int bytes = number(cells.get(1)).intValueExact();
          blocks.put(cells.get(0), new Block(cells.get(0), bytes, cells.get(2), new ArrayList<>()));
        }
        case "FIELD" -> {
          expect(row, 7);
          addField(blocks, names, cells, 1, 2);
        }
        case "ARRAY" -> {
          expect(row, 8);
          addField(blocks, names, cells, number(cells.get(2)).intValueExact(), 3);
        }
        default -> throw new IllegalArgumentException("not a row of a layout: " + row);
      }
    }
    blocks.values().forEach(LayoutGenerator::check);
    return new Layout(constants, blocks);
  }

  /** The cells after the type (and count): name, offset, writer, order, doc. */
  private static void addField(
      Map<String, Block> blocks, Set<String> names, List<String> cells, int count, int at) {
    Block block = blocks.get(cells.get(0));
    if (block == null) {
      throw new IllegalArgumentException("a field of no block: " + cells);
    }
    if (!TYPE_BYTES.containsKey(cells.get(1)) || count < 1) {
      throw new IllegalArgumentException("a field of no known type, or of no length: " + cells);
    }
    unique(names, "field " + cells.get(0) + "." + cells.get(at));
    block
        .fields()
        .add(
            new Field(
                cells.get(at),
                cells.get(1),
                count,
                number(cells.get(at + 1)).intValueExact(),
                cells.get(at + 2),
                cells.get(at + 4)));
  }

  private static void check(Block block) {
    int end = 0;
    for (Field field : block.fields()) {
      if (field.offset() != end) {
        throw new IllegalArgumentException(
            (field.offset() < end ? "overlap" : "gap")
                + " before "
                + block.name()
                + "."
                + field.name()
                + ": it is at "
                + field.offset()
                + ", what is before it ends at "
                + end);
      }
      if (field.offset() % TYPE_BYTES.get(field.type()) != 0) {
        throw new IllegalArgumentException(
            "misaligned: " + block.name() + "." + field.name() + " at " + field.offset());
      }
      end += field.bytes();
    }
    if (end != block.bytes()) {
      throw new IllegalArgumentException(
          "block " + block.name() + " is " + block.bytes() + " bytes, its fields end at " + end);
    }
  }

  static List<Variable> variables(String source) {
    List<Variable> variables = new ArrayList<>();
    Set<String> names = new HashSet<>();
    for (Row row : rows(source)) {
      if (!row.macro().equals("ENV")) {
        throw new IllegalArgumentException("not a row of an environment: " + row);
      }
      expect(row, 3);
      unique(names, row.cells().get(0));
      variables.add(new Variable(row.cells().get(0), row.cells().get(1), row.cells().get(2)));
    }
    return variables;
  }

  private static List<Row> rows(String source) {
    String code = COMMENT.matcher(source).replaceAll(" ");
    List<Row> rows = new ArrayList<>();
    Matcher matcher = ROW.matcher(code);
    int end = 0;
    while (matcher.find()) {
      refuseText(code.substring(end, matcher.start()));
      end = matcher.end();
      List<String> cells = new ArrayList<>();
      Matcher cell = CELL.matcher(matcher.group(2));
      while (cell.find()) {
        if (cell.group(1) != null) {
          cells.add(cell.group(1).replace("\\\"", "\"").replace("\\\\", "\\"));
        } else if (!cell.group(2).isBlank()) {
          cells.add(cell.group(2).strip());
        }
      }
      rows.add(new Row(matcher.group(1), cells));
    }
    refuseText(code.substring(end));
    return rows;
  }

  private static void refuseText(String between) {
    if (!between.isBlank()) {
      throw new IllegalArgumentException("neither a row nor a comment: " + between.strip());
    }
  }

  private static void expect(Row row, int cells) {
    if (row.cells().size() != cells) {
      throw new IllegalArgumentException("a row of " + cells + " cells was expected: " + row);
    }
  }

  private static void unique(Set<String> names, String name) {
    if (!names.add(name)) {
      throw new IllegalArgumentException("there twice: " + name);
    }
  }

  private static BigInteger number(String text) {
    BigInteger value =
        text.startsWith("0x") ? new BigInteger(text.substring(2), 16) : new BigInteger(text);
    if (value.signum() < 0 || value.compareTo(U64_LIMIT) >= 0) {
      throw new IllegalArgumentException("out of range: " + text);
    }
    return value;
  }

  static String text(Layout layout) {
    StringBuilder out = new StringBuilder();
    for (Constant constant : layout.constants()) {
      out.append("CONST ").append(constant.name()).append(' ').append(constant.value());
      out.append('\n');
    }
    for (Block block : layout.blocks().values()) {
      out.append("BLOCK ").append(block.name()).append(' ').append(block.bytes()).append('\n');
      for (Field field : block.fields()) {
        out.append("FIELD ").append(block.name()).append(' ').append(field.name()).append(' ');
        out.append(field.offset()).append(' ').append(field.bytes()).append(' ');
        out.append(field.type()).append('\n');
      }
    }
    return out.toString();
  }

  private static String shmJava(Layout layout) {
    StringBuilder out = new StringBuilder();
    out.append("package dev.vgpu.cuda.layout;\n\n");
    out.append("/** The shared region of a lease. Made from vgpu_shm.def. */\n");
    out.append("public final class ShmLayout {\n");
    for (Constant constant : layout.constants()) {
      boolean isInt = constant.value().compareTo(U32_LIMIT) < 0;
      out.append("  /** ").append(doc(constant.doc(), constant.name())).append(" */\n");
      out.append("  public static final ").append(isInt ? "int " : "long ").append(constant.name());
      out.append(" = 0x").append(constant.value().toString(16)).append(isInt ? ";\n" : "L;\n");
    }
    out.append("\n  private ShmLayout() {}\n");
    Map<String, String> used = new HashMap<>();
    for (Block block : layout.blocks().values()) {
      String type =
          Arrays.stream(block.name().split("_"))
              .map(word -> word.substring(0, 1).toUpperCase(Locale.ROOT) + word.substring(1))
              .collect(Collectors.joining());
      if (used.put(type, type) != null) {
        throw new IllegalArgumentException("there twice: " + type);
      }
      out.append("\n  /** Offsets within a block: ").append(doc(block.doc(), type)).append(" */\n");
      out.append("  public static final class ").append(type).append(" {\n");
      out.append("    /** The block's size in bytes. */\n");
      out.append("    public static final int BYTES = ").append(block.bytes()).append(";\n");
      for (Field field : block.fields()) {
        String name = field.name().toUpperCase(Locale.ROOT);
        out.append("    /** ").append(doc(field.doc(), name)).append(" */\n");
        out.append("    public static final int ").append(name);
        out.append(" = ").append(field.offset()).append(";\n");
        if (field.count() > 1) {
          out.append("    /** The length of ").append(name).append(". */\n");
          out.append("    public static final int ").append(name).append("_LENGTH");
          out.append(" = ").append(field.count()).append(";\n");
        }
      }
      out.append("\n    private ").append(type).append("() {}\n  }\n");
    }
    return out.append("}\n").toString();
  }

  private static String environmentJava(List<Variable> variables) {
    StringBuilder out = new StringBuilder();
    out.append("package dev.vgpu.cuda.layout;\n\n");
    out.append("/** Environment variables that Java and C share. Made from vgpu_env.def. */\n");
    out.append("public final class HookEnvironment {\n");
    for (Variable variable : variables) {
      out.append("  /** ").append(doc(variable.doc(), variable.name())).append(" */\n");
      out.append("  public static final String ").append(variable.name());
      out.append(" = \"").append(variable.name()).append("\";\n");
    }
    return out.append("\n  private HookEnvironment() {}\n}\n").toString();
  }

  private static String doc(String text, String name) {
    String plain = text.isBlank() || text.equals("0") ? name : text;
    return plain
            .replace("&", "&amp;")
            .replace("<", "&lt;")
            .replace(">", "&gt;")
            .replace("@", "&#64;")
            .replace("*/", "* /")
        + ".";
  }
}
