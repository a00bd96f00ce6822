package dev.vgpu.core.disk;

import dev.vgpu.core.wire.MalformedMessageException;
import dev.vgpu.core.wire.RequestValues;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.VirtualGpuRequest;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Pattern;

/**
 * The state of a lease on disk, for the next holder of the seat.
 *
 * @param id the virtual GPU's name
 * @param gpus the GPUs that it is cut from, at least one
 * @param request what is granted
 * @param owner the process that acquired it
 * @param backend the backend that was prepared for its processes; empty if none was
 * @param programs the programs that were started under it and may not have attached yet
 * @param suspension who caused its suspension, done or imminent; empty if it is not suspended
 * @param chosen the backend chosen when it was granted; empty if none was needed
 * @param ownerKey the {@link OwnerSecret#key} of its owner
 * @param member the member of the seat's group that acquired it; empty: the seat's user, or root
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
    String ownerKey,
    Optional<Member> member) {
  private static final Pattern ID =
      Pattern.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,62}-[1-9][0-9]{0,17}");

  /** The most programs that are tracked. */
  public static final int MOST_PROGRAMS = 256;

  /**
   * Creates a record of a lease that is not suspended, has no chosen backend, and cannot be claimed
   * by any process.
   *
   * @param id the virtual GPU's name
   * @param gpus the GPUs that it is cut from, at least one
   * @param request what is granted
   * @param owner the process that acquired it
   * @param backend the backend that was prepared for its processes; empty if none was
   * @param programs the programs that were started under it and may not have attached yet
   */
  public LeaseRecord(
      String id,
      List<GpuId> gpus,
      VirtualGpuRequest request,
      ProcessIdentity owner,
      Optional<String> backend,
      List<ProcessIdentity> programs) {
    this(
        id,
        gpus,
        request,
        owner,
        backend,
        programs,
        Optional.empty(),
        Optional.empty(),
        "",
        Optional.empty());
  }

  /**
   * {@return whether a text is a valid name of a virtual GPU}
   *
   * @param text any text
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
    member.ifPresent(by -> values.put("member.user", by.user()));
    member.ifPresent(by -> values.put("member.group", by.group()));
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
          values.getOrDefault("owner.key", ""),
          Optional.ofNullable(values.get("member.user"))
              .map(user -> new Member(user, RequestValues.need(values, "member.group"))));
    } catch (IllegalArgumentException e) {
      throw new MalformedMessageException("not a lease: " + e.getMessage(), e);
    }
  }

  private static List<ProcessIdentity> programs(String text) {
    List<ProcessIdentity> programs = new ArrayList<>();
    for (String program : text.split(" ", MOST_PROGRAMS + 1)) {
      int colon = program.indexOf(':');
      if (colon > 0 && programs.size() < MOST_PROGRAMS) {
        programs.add(
            new ProcessIdentity(
                Long.parseLong(program.substring(0, colon)),
                Long.parseLong(program.substring(colon + 1))));
      }
    }
    return List.copyOf(programs);
  }
}
