"use strict";
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const figures = data.figures;
  const {byId, narrow, css, number, percent, element, table, chart, draw, axis, tooltip, palette,
    rarity, rarityName, timelineOption, shareSeries, shareOption} = page;
  const mebibytes = (bytes) => Math.ceil(bytes / 1048576);
  function header() {
    byId("run").textContent = figures.date.replace("T", " ").replace("Z", " UTC")
      + " · " + figures.machine + " · vgpu " + figures.version + ", commit " + figures.commit;
    (figures.targets || []).forEach((target) => {
      const card = element(byId("targets"), "div", undefined, "card");
      element(card, "div", target.title, "title");
      element(card, "div", target.measured, "value");
      const asked = element(card, "div", undefined, "asked");
      element(asked, "span", target.met ? "✓ met" : "✗ missed", target.met ? "met" : "missed");
      element(asked, "span", " · target " + target.asked, "quiet");
    });
    (data.sentences || []).forEach((sentence) => element(byId("meaning"), "p", sentence));
  }

  const lineColour = {online_alone: "alone", uncontrolled: "uncontrolled", vgpu: "vgpu"};
  const lineName = {online_alone: "alone", uncontrolled: "uncontrolled", vgpu: "with vgpu"};

  /** How many pixels each line's label must move up or down, so that no label covers another. */
  function labelShifts(height) {
    const ends = data.curves.map((curve, index) =>
      ({index, value: Math.log2(Math.max(curve.points[curve.points.length - 1][1], 0.001))}));
    const all = data.curves.flatMap((c) => c.points.map((p) => Math.log2(Math.max(p[1], 0.001))));
    const low = Math.floor(Math.min(...all));
    const scale = height / Math.max(1, Math.ceil(Math.max(...all)) - low);
    const shifts = [];
    let free = Infinity;
    ends.sort((a, b) => b.value - a.value).forEach((end) => {
      const wanted = (end.value - low) * scale;
      const place = Math.min(wanted, free);
      free = place - 17;
      shifts[end.index] = wanted - place;
    });
    return shifts;
  }

  function latencyOption() {
    const shifts = labelShifts(byId("latency").clientHeight - 80);
    const end = Math.max(...data.curves.flatMap((c) => c.points.map((p) => rarity(p[0]))));
    return {
      grid: {left: 52, right: narrow() ? 88 : 110, top: 34, bottom: 46},
      xAxis: axis({type: "value", min: 0, max: Math.ceil(end * 4) / 4, interval: 1,
        name: "requests answered within the time", nameLocation: "middle", nameGap: 32,
        axisLabel: {color: css("quiet"), margin: 12, formatter: (x) => Number.isInteger(x) ? rarityName(x) : ""}}),
      yAxis: axis({type: "log", logBase: 2, name: "ms", nameLocation: "end",
        nameTextStyle: {color: css("quiet"), align: "right"}}),
      tooltip: tooltip({trigger: "axis", formatter: (items) =>
        percent(100 * (1 - Math.pow(10, -items[0].value[0])), 2) + " answered within<br>"
        + items.map((i) => i.marker + i.seriesName + ": " + number(i.value[1], 1) + " ms").join("<br>")}),
      series: data.curves.map((curve, index) => ({
        type: "line", name: lineName[curve.phase], symbol: "none",
        lineStyle: {width: curve.phase === "vgpu" ? 3 : 2, color: css(lineColour[curve.phase]),
          type: curve.phase === "online_alone" ? "dashed" : "solid"},
        itemStyle: {color: css(lineColour[curve.phase])},
        z: curve.phase === "online_alone" ? 4 : 3,
        data: curve.points.map((p) => [rarity(p[0]), Math.max(p[1], 0.001)]),
        endLabel: {show: true, formatter: lineName[curve.phase], color: css(lineColour[curve.phase]),
          fontWeight: 600, fontSize: narrow() ? 11 : 13, offset: [0, shifts[index]]},
        markLine: curve.phase !== "vgpu" ? undefined : {silent: true, symbol: "none",
          lineStyle: {color: css("quiet"), type: "dotted"},
          label: {formatter: "p99", color: css("quiet"), position: "end"}, data: [{xAxis: 2}]},
      })),
    };
  }

  function onlineTable() {
    const row = (title, key, offline, id) => [title,
      key ? number(figures[key + "_p50_ms"], 1) : "–",
      key ? number(figures[key + "_p99_ms"], 1) : "–",
      key ? number(figures[key + "_max_ms"], 1) : "–",
      key ? String(figures[key + "_requests"]) : "–",
      key ? String(figures[key + "_failed"]) : "–",
      offline ? number(figures[offline], 0) : "–",
      percent(figures[id + "_utilisation_percent"], 0)];
    table("online-table",
      ["", "p50 ms", "p99 ms", "max ms", "requests", "failed", "offline texts/s", "device used"], [
        row("online alone", "online_alone", null, "online_alone"),
        row("offline alone", null, "offline_alone_per_s", "offline_alone"),
        row("both, uncontrolled", "online_uncontrolled", "offline_uncontrolled_per_s", "uncontrolled"),
        row("both, with vgpu", "online_vgpu", "offline_vgpu_per_s", "vgpu")], 3);
  }

  function timelines() {
    let current = data.timelines.find((t) => t.phase === "vgpu") || data.timelines[0];
    const drawing = chart(byId("timeline"), () => timelineOption(current));
    const buttons = data.timelines.map((timeline) => {
      const button = element(byId("timeline-tabs"), "button", timeline.title);
      button.type = "button";
      button.onclick = () => select(timeline);
      return {button, timeline};
    });
    function select(timeline) {
      current = timeline;
      buttons.forEach((b) => b.button.setAttribute("aria-pressed", String(b.timeline === current)));
      byId("timeline").style.height = 130 + 40 * Math.max(2, current.tenants.length) + "px";
      draw(drawing);
    }
    select(current);
  }

  function pairs() {
    const two = data.shares.filter((shares) => shares.phase !== "six_models");
    two.forEach((shares) => {
      const box = element(byId("pairs"), "div");
      element(box, "h3", shares.title.replace("75/25 ", "").replace(/^./, (c) => c.toUpperCase()));
      chart(element(box, "div", undefined, "chart"), () => shareOption(shares,
        shares.tenants.map((t, i) => shareSeries(shares, i, palette[i], t.percent))));
    });
    table("pairs-table",
      ["", "held, 75", "held, 25", "least of 75 over 5 s", "most of 75 over 5 s", "texts/s", "device used"],
      two.map((shares) => [shares.title,
        percent(figures[shares.phase + "_75_percent"], 1),
        percent(figures[shares.phase + "_25_percent"], 1),
        percent(figures[shares.phase + "_75_least_5s_percent"], 1),
        percent(figures[shares.phase + "_75_most_5s_percent"], 1),
        number(figures[shares.phase + "_per_s"], 0),
        percent(figures[shares.phase + "_utilisation_percent"], 0)]));
  }

  function six() {
    const shares = data.shares.find((s) => s.phase === "six_models");
    byId("six-note").textContent = "Part of all time that each model held the device; shaded: the burst to "
      + figures.six_models.filter((m) => m.has_burst).map((m) => m.name).join(" and ")
      + "; dashed: the share that is its own when it has work. The others ask for less than theirs, and get it.";
    shares.tenants.forEach((tenant, index) => {
      const model = figures.six_models.find((m) => m.name === tenant.name);
      const colour = model.has_burst ? "uncontrolled" : "vgpu";
      const box = element(byId("six"), "div");
      element(box, "h3", tenant.name + ", " + tenant.percent + " %" + (model.has_burst ? ", burst" : ""));
      chart(element(box, "div", undefined, "chart"), () => {
        const line = shareSeries(shares, index, colour, tenant.percent);
        line.markArea = {silent: true, itemStyle: {color: css("quiet"), opacity: 0.12},
          data: [[{xAxis: shares.burst_from_s}, {xAxis: shares.burst_to_s}]]};
        return shareOption(shares, [line], {grid: {left: 30, right: 44, top: 10, bottom: 24}});
      });
    });
    table("six-table",
      ["model", "share asked", "held in the burst", "requests", "failed", "p50 ms", "p99 ms", "memory peak", "quota"],
      figures.six_models.map((m) => [m.name + (m.has_burst ? " (burst)" : ""),
        percent(m.share_asked_percent, 0), percent(m.share_held_in_burst_percent, 1),
        String(m.requests), String(m.failed), number(m.p50_ms, 1), number(m.p99_ms, 1),
        mebibytes(m.memory_peak_bytes) + " MiB", mebibytes(m.memory_quota_bytes) + " MiB"]));
  }

  function how() {
    const facts = [
      ["Online load", figures.trace + ". A request's prompt becomes passages of up to 128 tokens, one of our tokens for eight of the trace's. The factor was chosen so that the requests alone use about "
        + figures.load_asked_percent + " % of the device; a request costs it " + number(figures.request_cost_mean_ms, 1) + " ms on average."],
      ["Offline load", "Batches of 32 sentences, as fast as the device allows."],
      ["Phases", "One server process for all phases. The three that are compared replay the same requests, cut into slices that take turns, so that the machine's drift hits them alike."],
      ["Latency", "From the scheduled arrival to the complete answer, seen by a load generator in another process over HTTP (open loop). It sent 99 of 100 requests within "
        + number(figures.request_send_lag_p99_ms, 2) + " ms of their time."],
      ["Device use", "From the begin and the end of every call, cancelled ones included. Shares held are parts of the time that the device was used; the worst window is exact, not sampled."],
      ["Preemption", figures.offline_vgpu_preemptions + " calls of the offline job were cancelled for online requests, and run again."],
      ["Machine", figures.machine + ". Meanwhile other programs used " + percent(figures.other_programs_cpu_percent, 0)
        + " of its processors, and its hypervisor withheld " + percent(figures.stolen_cpu_percent, 0) + "."],
      ["Version", "vgpu " + figures.version + ", commit " + figures.commit + ", " + figures.date],
    ];
    facts.forEach(([term, text]) => {
      element(byId("how"), "dt", term);
      element(byId("how"), "dd", text);
    });
    [
      "Where no GPU provider is there, the device is this machine's CPU, and the server, the load generator and the tokenizer use the same processors. A GPU has its own; figures on one will differ.",
      "One short run on one machine. The 99th percentile of "
        + figures.online_vgpu_requests + " requests rests on the slowest " + Math.max(1, Math.round(figures.online_vgpu_requests / 100)) + " of them.",
      "Calls take turns in one JVM, and programs are trusted to make their calls under vgpu. This is no security boundary.",
      "Memory is kept by the budgets that calls state, not by counting allocations.",
    ].forEach((text) => element(byId("limits"), "li", text));
    byId("footer").textContent = "Trace: Azure Public Dataset, LLM inference trace 2023, by Microsoft, CC-BY 4.0. "
      + "Plots: Apache ECharts, Apache-2.0. This file needs no network.";
  }

  function processes() {
    const all = figures.processes;
    byId("processes-note").textContent = "Programs that know nothing of vgpu, each a process of its own, under virtual GPUs of one "
      + all.device + " (backend: " + all.tenants[0].backend + "). Part of all time that each had work on the device, by its measured GPU time; shaded: the online program is there; dashed: what was asked.";
    data.process_sentences.forEach((sentence) => element(byId("processes-meaning"), "p", sentence));
    const shares = {bin_s: all.bin_s, series: all.tenants.map((t) => t.series), tenants: all.tenants};
    all.tenants.forEach((tenant, index) => {
      const box = element(byId("processes"), "div");
      element(box, "h3", tenant.name + ", " + tenant.class.toLowerCase());
      chart(element(box, "div", undefined, "chart"), () => {
        const line = shareSeries(shares, index, palette[index], tenant.asked_percent);
        if (!tenant.asked_percent) delete line.markLine;
        line.markArea = {silent: true, itemStyle: {color: css("quiet"), opacity: 0.12},
          data: [[{xAxis: all.online_from_s}, {xAxis: tenant.series.length * all.bin_s}]]};
        return shareOption(shares, [line]);
      });
    });
    table("processes-table",
      ["program", "asked", "held by three", "held with online", "memory peak", "quota", "preempted"],
      all.tenants.map((t) => [t.name + " (" + t.class.toLowerCase() + ")",
        t.asked_percent ? percent(t.asked_percent, 0) : "–",
        percent(t.held_three_percent, 1), percent(t.held_together_percent, 1),
        mebibytes(t.memory_peak_bytes) + " MiB", mebibytes(t.memory_quota_bytes) + " MiB",
        String(t.preemptions)]));
    ["Meanwhile other programs used " + percent(all.other_programs_cpu_percent, 0) + " of this machine's processors, and its hypervisor withheld "
        + percent(all.stolen_cpu_percent, 0) + ".",
      "The GPU is emulated: kernels take the time that they are told to, on this machine's clock, and the programs share its processors.",
      "A preloaded hook is no security boundary: a program that wants to can get past it."]
      .forEach((text) => element(byId("processes-limits"), "li", text));
  }

  const hide = (name) => document.querySelectorAll("section." + name).forEach((s) => { s.hidden = true; });

  header();
  if (data.curves) {
    chart(byId("latency"), latencyOption);
    onlineTable();
    timelines();
    pairs();
    six();
    how();
  } else {
    hide("first");
    byId("targets").hidden = true;
  }
  if (figures.processes) processes();
  else hide("second");
})();
