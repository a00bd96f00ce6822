package dev.vgpu.core.disk;

import dev.vgpu.GpuId;
import dev.vgpu.VirtualGpuRequest;
import dev.vgpu.core.wire.MalformedMessageException;
import dev.vgpu.core.wire.RequestValues;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Pattern;

/**
 * What is on disk of a lease, for the next holder of the seat.
 *
 * @param id its name
 * @param gpus the GPUs that it is cut from, at least one
 * @param request what is granted
 * @param owner the process that acquired it
 * @param backend the backend that was prepared for its processes, if one was
 * @param programs those that were started under it and may not have attached yet
 * @param suspension on whose behalf it is suspended, or about to be; empty: it is not
 * @param chosen the backend that was chosen for it when it was granted; empty: none was needed
 * @param ownerKey what its owner's {@link OwnerSecret} is recognised by
 */
public record LeaseRecord(
    String id,
    List<GpuId> gpus,
    VirtualGpuRequest request,
    ProcessIdentity owner,
    Optional<String> backend,
    List<ProcessIdentity> programs,
    Optional<String> suspension,
    Optional<String> chosen,
    String ownerKey) {
  private static final Pattern ID =
      Pattern.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,62}-[1-9][0-9]{0,17}");

  /** How many programs are kept count of. */
  public static final int MOST_PROGRAMS = 1_000;

  /**
   * Makes one that is not suspended, for which no backend was chosen, and that nobody can claim.
   *
   * @param id its name
   * @param gpus the GPUs that it is cut from, at least one
   * @param request what is granted
   * @param owner the process that acquired it
   * @param backend the backend that was prepared for its processes, if one was
   * @param programs those that were started under it and may not have attached yet
   */
  public LeaseRecord(
      String id,
      List<GpuId> gpus,
      VirtualGpuRequest request,
      ProcessIdentity owner,
      Optional<String> backend,
      List<ProcessIdentity> programs) {
    this(id, gpus, request, owner, backend, programs, Optional.empty(), Optional.empty(), "");
  }

  /**
   * {@return whether a text can be a virtual GPU's name}
   *
   * @param text whatever it is
   */
  public static boolean isId(String text) {
    return ID.matcher(text).matches();
  }

  Map<String, String> values() {
    Map<String, String> values = new LinkedHashMap<>();
    values.put("id", id);
    values.putAll(RequestValues.of(gpus));
    values.put("owner.pid", "" + owner.pid());
    values.put("owner.start", "" + owner.start());
    backend.ifPresent(name -> values.put("backend", name));
    suspension.ifPresent(by -> values.put("suspension", by));
    chosen.ifPresent(name -> values.put("chosen", name));
    values.put("owner.key", ownerKey);
    StringBuilder pids = new StringBuilder();
    for (ProcessIdentity program : programs) {
      pids.append(program.pid()).append(':').append(program.start()).append(' ');
    }
    values.put("programs", pids.toString().trim());
    RequestValues.of(request).forEach((name, value) -> values.put("request." + name, value));
    return values;
  }

  static LeaseRecord of(Map<String, String> values) {
    try {
      String id = RequestValues.need(values, "id");
      if (!isId(id)) {
        throw new MalformedMessageException("not a virtual GPU's name: '" + id + "'");
      }
      Map<String, String> request = new LinkedHashMap<>();
      values.forEach(
          (name, value) -> {
            if (name.startsWith("request.")) {
              request.put(name.substring("request.".length()), value);
            }
          });
      return new LeaseRecord(
          id,
          RequestValues.gpus(name -> Optional.ofNullable(values.get(name))),
          RequestValues.request(request),
          new ProcessIdentity(
              Long.parseLong(RequestValues.need(values, "owner.pid")),
              Long.parseLong(RequestValues.need(values, "owner.start"))),
          Optional.ofNullable(values.get("backend")),
          programs(values.getOrDefault("programs", "")),
          Optional.ofNullable(values.get("suspension")),
          Optional.ofNullable(values.get("chosen")),
          values.getOrDefault("owner.key", ""));
    } catch (IllegalArgumentException e) {
      throw new MalformedMessageException("not a lease: " + e.getMessage(), e);
    }
  }

  private static List<ProcessIdentity> programs(String text) {
    List<ProcessIdentity> programs = new ArrayList<>();
    for (String program : text.split(" ", MOST_PROGRAMS)) {
      int colon = program.indexOf(':');
      if (colon > 0) {
        programs.add(
            new ProcessIdentity(
                Long.parseLong(program.substring(0, colon)),
                Long.parseLong(program.substring(colon + 1))));
      }
    }
    return List.copyOf(programs);
  }
}
