package dev.vgpu.core.schedule;

import dev.vgpu.core.schedule.SchedulerState.Mode;
import dev.vgpu.core.schedule.SchedulerState.TenantState;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** Describes a scheduler's state in words. Used once. */
final class StateReport {
  private final SchedulerSettings settings;
  private final ActiveGates gates;
  private final LevelTurns upper;
  private final LevelTurns offline;
  private final TurnLength lengths;

  StateReport(
      SchedulerSettings settings,
      ActiveGates gates,
      LevelTurns upper,
      LevelTurns offline,
      TurnLength lengths) {
    this.settings = settings;
    this.gates = gates;
    this.upper = upper;
    this.offline = offline;
    this.lengths = lengths;
  }

  SchedulerState make() {
    List<TenantState> tenants = new ArrayList<>();
    add(upper.level, tenants);
    add(offline.level, tenants);
    for (int i = 0; i < gates.size(); i++) {
      if (!gates.get(i).isRunnable()) {
        tenants.add(stateOf(gates.get(i), gates.levelOf(gates.get(i))));
      }
    }
    Optional<Tenant> holder = holder();
    Mode mode = mode();
    return new SchedulerState(
        mode,
        reason(mode),
        holder.map(Tenant::id),
        mode == Mode.IDLE || holder.isEmpty() ? 0 : turnNs(holder.get()),
        lengths.handOvers(),
        tenants);
  }

  private void add(ShareLevel level, List<TenantState> tenants) {
    for (int i = 0; i < level.size(); i++) {
      tenants.add(stateOf(level.member(i), level));
    }
  }

  private TenantState stateOf(Tenant tenant, ShareLevel level) {
    double lagNs = level.lag(tenant);
    boolean capped = !tenant.open && !tenant.takesSurplus() && lagNs < 0;
    return new TenantState(
        tenant.id, tenant.isRunnable(), tenant.open, tenant.isRunnable() && capped, lagNs);
  }

  private Optional<Tenant> holder() {
    Tenant first = null;
    for (int i = 0; i < gates.size(); i++) {
      Tenant tenant = gates.get(i);
      if (tenant.isRunnable() && (first == null || (tenant.open && !first.open))) {
        first = tenant;
      }
    }
    return Optional.ofNullable(first);
  }

  private long turnNs(Tenant tenant) {
    return lengths.of(tenant, gates.levelOf(tenant).rate(tenant), gates.runnable() == 1);
  }

  private Mode mode() {
    if (gates.runnable() == 0) {
      return Mode.IDLE;
    }
    if (gates.runnable() == 1) {
      return Mode.ALONE;
    }
    boolean beside = gates.isOpen(false) && gates.isOpen(true);
    boolean shared =
        (upper.isSharing() && upper.level.size() > 1)
            || (upper.level.size() == 0 && offline.isSharing());
    return beside || shared ? Mode.OVERLAP : Mode.STRICT;
  }

  private String reason(Mode mode) {
    return switch (mode) {
      case IDLE -> "no tenant has work";
      case ALONE -> alone();
      case OVERLAP -> overlap();
      case STRICT -> strict();
    };
  }

  private String alone() {
    Tenant only = upper.level.size() > 0 ? upper.level.member(0) : offline.level.member(0);
    return only.takesSurplus()
        ? "only " + only.id + " has work"
        : "only " + only.id + " has work; it is held to its fixed share";
  }

  private String overlap() {
    return gates.isOpen(false) && gates.isOpen(true)
        ? "offline work yields by itself to more urgent work"
        : "the tenants with work fit beside each other: each does more than in turns";
  }

  private String strict() {
    if (settings.strict()) {
      return "the GPU's settings ask for strict turns";
    }
    if (upper.level.size() > 0 && offline.level.size() > 0) {
      if (upper.level.pick() == null) {
        return upper.level.member(0).id + " is at its fixed share; offline tenants get the rest";
      }
      String unable = unable(upper.level) + unable(offline.level);
      if (!unable.isEmpty()) {
        return "cannot yield by itself:" + unable;
      }
    }
    ShareLevel level = upper.level.size() > 1 ? upper.level : offline.level;
    if (level.size() > ActiveGates.MOST_TOGETHER) {
      return "more than "
          + ActiveGates.MOST_TOGETHER
          + " tenants have work: in time slices each would wait for all others";
    }
    if (!level.isOfOneClass()) {
      return "an online tenant goes before a nearline one";
    }
    for (int i = 0; i < level.size(); i++) {
      if (!level.member(i).takesSurplus()) {
        return level.member(i).id + " has a fixed share";
      }
    }
    LevelTurns turns = upper.level.size() > 1 ? upper : offline;
    if (turns.mustStayShort()) {
      return "more urgent work may come: one offline tenant at a time has work on the GPU";
    }
    for (int i = 0; i < level.size(); i++) {
      if (!level.member(i).gate.mayOverlap()) {
        return "calls are not measured on the GPU: " + level.member(i).id;
      }
    }
    return upper.level.size() > 0 && offline.level.size() > 0
        ? "an offline tenant has a turn from the offline floor"
        : "the tenants with work use the GPU so much that they do not fit beside each other";
  }

  private static String unable(ShareLevel level) {
    int count = 0;
    String first = "";
    for (int i = 0; i < level.size(); i++) {
      Tenant tenant = level.member(i);
      if (!tenant.gate.yieldsByItself()) {
        first = count == 0 ? " " + tenant.id : first;
        count++;
      }
    }
    return count > 1 ? first + " and " + (count - 1) + " more" : first;
  }
}
