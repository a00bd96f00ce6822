package dev.vgpu.cli.simulation;

import dev.vgpu.cli.console.UserException;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.simulation.Arrivals;
import dev.vgpu.simulation.GateModel;
import dev.vgpu.simulation.RequestShape;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** Reads the tenants of a file. Confined to one thread. */
final class TenantReader {
  private static final Map<String, SharePolicy> POLICIES =
      Map.of(
          "best-effort", SharePolicy.BEST_EFFORT,
          "fixed", SharePolicy.FIXED_SHARE,
          "burst", SharePolicy.BURST_SHARE);
  private static final Map<String, PreemptionClass> CLASSES =
      Map.of(
          "online", PreemptionClass.ONLINE,
          "nearline", PreemptionClass.NEARLINE,
          "offline", PreemptionClass.OFFLINE);
  private static final MemorySize LEAST_QUOTA = MemorySize.ofMebibytes(1);
  private static final int MOST_COPIES = 256;

  /** How the work of a tenant is enforced. */
  private enum Enforced {
    HOOK,
    JVM
  }

  /**
   * A tenant as the file describes it. When it joins and leaves may depend on other tenants.
   *
   * @param at the tenant's place in the file
   * @param shareAt its share
   * @param quotaAt its quota
   * @param after the tenant after whose leaving it joins
   * @param joinNs the delay of its joining after that, or after the start
   * @param stayNs how long it stays, if its leaving depends on its joining
   * @param leaveNs when it leaves
   */
  record FileTenant(
      String name,
      Value at,
      @Nullable Value shareAt,
      @Nullable Value quotaAt,
      int gpu,
      VirtualGpuRequest request,
      GateModel model,
      Arrivals arrivals,
      RequestShape shape,
      List<Value> after,
      long joinNs,
      @Nullable Long stayNs,
      @Nullable Value leaveAt,
      @Nullable Long leaveNs) {}

  private final Path path;
  private final List<MixFile.FileGpu> gpus;
  private final Enforced enforced;
  private final Set<String> names = new HashSet<>();
  private GateModel hook = GateModel.processes();
  private GateModel jvm = GateModel.calls(-1);

  TenantReader(Path path, List<MixFile.FileGpu> gpus, @Nullable Value enforcement)
      throws UserException {
    this.path = path;
    this.gpus = gpus;
    this.enforced = enforcement == null ? Enforced.HOOK : enforced(enforcement);
  }

  private static Enforced enforced(Value value) throws UserException {
    return value.word(Map.of("hook", Enforced.HOOK, "jvm", Enforced.JVM));
  }

  /** Reads the costs of enforcement. */
  void costs(@Nullable Value value) throws UserException {
    if (value == null) {
      return;
    }
    Section section = value.section("costs");
    Value ofHook = section.find("hook");
    Value ofJvm = section.find("jvm");
    section.end();
    hook = ofHook == null ? hook : model(ofHook.section("the costs of the hook"), hook);
    jvm = ofJvm == null ? jvm : model(ofJvm.section("the costs in a JVM"), jvm);
  }

  private static GateModel model(Section section, GateModel usual) throws UserException {
    GateModel model =
        new GateModel(
            time(section, "tell", usual.tellNs()),
            time(section, "wake", usual.wakeNs()),
            time(section, "inFlight", usual.inFlightNs()),
            time(section, "inFlightAlone", usual.inFlightAloneNs()),
            time(section, "inFlightYielding", usual.inFlightYieldingNs()),
            time(section, "leastTurn", usual.leastTurnNs()),
            time(section, "shortIdle", usual.shortIdleNs()),
            flag(section, "lane", usual.lane()),
            time(section, "laneLinger", usual.laneLingerNs()),
            flag(section, "overlap", usual.mayOverlap()),
            usual.tellsInLumps(),
            usual.cancelTakesNs());
    section.end();
    return model;
  }

  private static long time(Section section, String key, long usualNs) throws UserException {
    Value value = section.find(key);
    return value == null ? usualNs : value.time(0);
  }

  private static boolean flag(Section section, String key, boolean usual) throws UserException {
    Value value = section.find(key);
    return value == null ? usual : value.yesOrNo();
  }

  /** Reads a tenant, or as many copies of it as its count says. */
  List<FileTenant> read(Value value) throws UserException {
    Section section = value.section("a tenant");
    Value name = section.get("name");
    Value count = section.find("count");
    Value share = section.find("share");
    Value quota = section.find("quota");
    Value gpu = section.find("gpu");
    Value after = section.find("after");
    Value leave = section.find("leave");
    Value stay = section.find("stay");
    if (leave != null && stay != null) {
      throw stay.error("'stay' and 'leave' both say when the tenant goes; leave one out");
    }
    VirtualGpuRequest request = request(section, share, quota);
    GateModel model = model(section);
    long joinNs = time(section, "join", 0);
    Value arrivalsAt = section.get("arrivals");
    Value requestAt = section.find("request");
    WorkReader work = new WorkReader(path, arrivalsAt, requestAt);
    section.end();
    int copies = count == null ? 1 : count.whole(1, MOST_COPIES);
    List<FileTenant> tenants = new ArrayList<>();
    for (int i = 1; i <= copies; i++) {
      String text = count == null ? name.text() : name.text() + "-" + i;
      if (!names.add(text)) {
        throw name.error("two tenants are called '" + text + "'");
      }
      tenants.add(
          new FileTenant(
              text,
              value,
              share,
              quota,
              gpu == null ? 0 : gpu(gpu),
              request,
              model,
              work.arrivals(),
              work.shape(),
              after(after),
              joinNs,
              stay == null ? null : stay.time(1),
              leave,
              leave == null ? null : leave.time(1)));
    }
    return tenants;
  }

  private static List<Value> after(@Nullable Value after) throws UserException {
    if (after == null) {
      return List.of();
    }
    return after.isScalar() ? List.of(after) : after.list();
  }

  private int gpu(Value value) throws UserException {
    for (int i = 0; i < gpus.size(); i++) {
      if (gpus.get(i).gpu().name().equals(value.text())) {
        return i;
      }
    }
    throw value.error(
        "there is no GPU '"
            + value.text()
            + "'; there are "
            + String.join(", ", gpus.stream().map(gpu -> gpu.gpu().name()).toList()));
  }

  private GateModel model(Section section) throws UserException {
    Value enforcement = section.find("enforcement");
    Value cancel = section.find("cancelTakes");
    Enforced kind = enforcement == null ? enforced : enforced(enforcement);
    GateModel model = kind == Enforced.HOOK ? hook : jvm;
    if (cancel == null) {
      return model;
    }
    if (kind == Enforced.HOOK) {
      throw cancel.error("'cancelTakes' is for calls in a JVM: kernels under the hook run to end");
    }
    return model.cancelling(cancel.time(0));
  }

  private static VirtualGpuRequest request(
      Section section, @Nullable Value share, @Nullable Value quota) throws UserException {
    Value policy = section.find("policy");
    Value cls = section.find("class");
    SharePolicy granted = policy == null ? SharePolicy.BEST_EFFORT : policy.word(POLICIES);
    if (granted == SharePolicy.BEST_EFFORT && share != null) {
      throw share.error("a best-effort tenant has no share; leave it out, or say policy: burst");
    }
    if (granted != SharePolicy.BEST_EFFORT && share == null) {
      throw section.error(
          "'share' is missing: policy "
              + (policy == null ? "" : policy.text().toLowerCase(Locale.ROOT))
              + " needs one");
    }
    VirtualGpuRequest.Builder builder =
        VirtualGpuRequest.builder()
            .policy(granted)
            .preemptionClass(cls == null ? PreemptionClass.NEARLINE : cls.word(CLASSES))
            .memory(quota == null ? LEAST_QUOTA : quota.memory());
    if (share != null) {
      builder.computePercent(share.whole(1, 100));
    }
    try {
      return builder.build();
    } catch (IllegalArgumentException | IllegalStateException e) {
      throw section.error(String.valueOf(e.getMessage()), e);
    }
  }
}
