"use strict";
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const figures = data.figures;
  const {byId, narrow, css, number, percent, element, table, chart, draw, axis, tooltip, palette,
    rarity, rarityName, timelineOption, shareOption} = page;
  const colour = (tenant) => palette[tenant % palette.length];
  const policyName = {BEST_EFFORT: "best-effort", FIXED_SHARE: "fixed", BURST_SHARE: "burst"};
  const terms = (tenant) => tenant.class.toLowerCase() + ", " + policyName[tenant.policy]
    + (tenant.share_percent === null ? "" : " " + tenant.share_percent + " %");
  const digits = (ms) => ms < 100 ? 2 : 0;
  const mostShown = 12;

  function header() {
    byId("name").textContent = figures.name;
    document.title = figures.name + " – vgpu simulation";
    byId("run").textContent = number(figures.duration_s, 0) + " s in virtual time, seed " + figures.seed
      + " · " + figures.date.replace("T", " ").replace("Z", " UTC") + " · vgpu " + figures.version
      + ", commit " + figures.commit;
    const worst = figures.tenants.filter((t) => t.worst_1s_points !== null)
      .reduce((a, b) => a === null || b.worst_1s_points > a.worst_1s_points ? b : a, null);
    const busy = figures.gpus.reduce((sum, gpu) => sum + gpu.busy_percent, 0) / figures.gpus.length;
    const cards = [["GPU time used", percent(busy, 1), figures.gpus.length > 1 ? "mean of " + figures.gpus.length + " GPUs" : figures.gpus[0].name]];
    cards.push(["Farthest from a share in any second", worst === null ? "–" : number(worst.worst_1s_points, 2),
      worst === null ? "no tenant stayed a second" : "points, " + worst.name + " at " + number(worst.worst_1s_at_s, 1) + " s"]);
    cards.push(["Faster than real time", Math.round(figures.times_faster).toLocaleString("en") + " ×",
      number(figures.duration_s, 0) + " s in " + number(figures.took_s, 3) + " s"]);
    cards.forEach(([title, value, note]) => {
      const card = element(byId("cards"), "div", undefined, "card");
      element(card, "div", title, "title");
      element(card, "div", value, "value");
      element(card, "div", note, "asked quiet");
    });
  }

  function shareLine(series, name, values, dashed) {
    return {
      type: "line", step: "end", symbol: "none", name,
      lineStyle: {width: dashed ? 1.4 : 2, type: dashed ? "dashed" : "solid", color: css(dashed ? "quiet" : colour(series.tenant))},
      itemStyle: {color: css(dashed ? "quiet" : colour(series.tenant))},
      areaStyle: dashed ? undefined : {color: css(colour(series.tenant)), opacity: 0.14},
      data: values.concat(values.slice(-1)).map((value, i) => [data.from_s + i * data.bin_s, value]),
    };
  }

  function shares() {
    const shown = data.series.filter((s) => s.held.length > 0).slice(0, mostShown);
    shown.forEach((series) => {
      const tenant = figures.tenants[series.tenant];
      const box = element(byId("shares"), "div");
      element(box, "h3", tenant.name + " – " + terms(tenant));
      const target = element(box, "div", undefined, "chart");
      target.setAttribute("role", "img");
      target.setAttribute("aria-label", "Share of " + tenant.name + " over time");
      chart(target, () => {
        const option = shareOption({series: [series.held], bin_s: data.bin_s, tenants: [tenant]},
          [shareLine(series, "held", series.held, false), shareLine(series, "entitled", series.entitled, true)]);
        option.xAxis.min = data.from_s;
        option.xAxis.max = data.from_s + series.held.length * data.bin_s;
        option.grid = {left: 36, right: 20, top: 12, bottom: 30};
        return option;
      });
    });
    table("share-table",
      ["tenant", "terms", "GPU", "held", "entitled", "worst 1 s, points", "GPU s", "kernels/s", "turns", "preempted"],
      figures.tenants.map((t) => [t.name, terms(t), t.gpu, percent(t.held_percent, 2), percent(t.entitled_percent, 2),
        number(t.worst_1s_points, 2), number(t.gpu_s, 2), number(t.kernels_per_s, 1), String(t.turns), String(t.preemptions)]));
  }

  function latencyOption() {
    const curves = data.curves.slice(0, mostShown);
    const end = Math.max(1, ...curves.flatMap((c) => c.points.map((p) => rarity(p[0]))));
    return {
      grid: {left: 52, right: 20, top: narrow() ? 76 : 52, bottom: 46},
      legend: {top: 0, left: 0, type: "scroll", textStyle: {color: css("ink")}, itemWidth: 18,
        pageTextStyle: {color: css("quiet")}},
      xAxis: axis({type: "value", min: 0, max: Math.ceil(end * 4) / 4, interval: 1,
        name: "requests answered within the time", nameLocation: "middle", nameGap: 32,
        axisLabel: {color: css("quiet"), margin: 12, formatter: (x) => Number.isInteger(x) ? rarityName(x) : ""}}),
      yAxis: axis({type: "log", logBase: 10, name: "ms", nameLocation: "end",
        nameTextStyle: {color: css("quiet"), align: "right"}}),
      tooltip: tooltip({trigger: "axis", formatter: (items) =>
        percent(100 * (1 - Math.pow(10, -items[0].value[0])), 2) + " answered within<br>"
        + items.map((i) => i.marker + i.seriesName + ": " + number(i.value[1], digits(i.value[1])) + " ms").join("<br>")}),
      series: curves.map((curve) => ({
        type: "line", name: figures.tenants[curve.tenant].name, symbol: "none",
        lineStyle: {width: 2, color: css(colour(curve.tenant))},
        itemStyle: {color: css(colour(curve.tenant))},
        data: curve.points.map((p) => [rarity(p[0]), Math.max(p[1], 0.001)]),
      })),
    };
  }

  function latencies() {
    if (data.curves.length === 0) {
      byId("latency-section").hidden = true;
      return;
    }
    chart(byId("latency"), latencyOption);
    const ms = (t, key) => t.latency_ms[key] === undefined ? "–" : number(t.latency_ms[key], digits(t.latency_ms[key]));
    table("latency-table",
      ["tenant", "requests", "answered", "answered/s", "p50 ms", "p95 ms", "p99 ms", "p99.9 ms", "max ms"],
      figures.tenants.map((t) => [t.name, String(t.requests), String(t.answered), number(t.requests_per_s, 1),
        ms(t, "p50"), ms(t, "p95"), ms(t, "p99"), ms(t, "p99_9"), ms(t, "max")]));
  }

  function timelines() {
    const all = data.timelines.filter((t) => t.spans.length > 0).map((t) => {
      const numbers = figures.tenants.map((tenant, i) => i).filter((i) => figures.tenants[i].gpu === t.gpu);
      return {
        gpu: t.gpu, tenants: numbers.map((i) => ({name: figures.tenants[i].name})), numbers,
        spans: t.spans.map((s) => [numbers.indexOf(s[0]), s[1] - t.from_ms, s[2] - t.from_ms]),
      };
    });
    if (all.length === 0) {
      byId("timeline-section").hidden = true;
      return;
    }
    let current = all[0];
    const option = () => {
      const made = timelineOption(current);
      made.series[0].data = current.spans.map((span) =>
        ({value: span, itemStyle: {color: css(colour(current.numbers[span[0]]))}}));
      made.dataZoom.forEach((zoom) => { zoom.endValue = narrow() ? 100 : 250; });
      return made;
    };
    byId("timeline").style.height = 130 + 40 * Math.max(2, current.tenants.length) + "px";
    const drawing = chart(byId("timeline"), option);
    if (all.length === 1) return;
    const buttons = all.map((timeline) => {
      const button = element(byId("timeline-tabs"), "button", timeline.gpu);
      button.type = "button";
      button.setAttribute("aria-pressed", String(timeline === current));
      button.onclick = () => {
        current = timeline;
        buttons.forEach((b, i) => b.setAttribute("aria-pressed", String(all[i] === current)));
        byId("timeline").style.height = 130 + 40 * Math.max(2, current.tenants.length) + "px";
        draw(drawing);
      };
      return button;
    });
  }

  function how() {
    const facts = [
      ["File", figures.file],
      ["Time", number(figures.duration_s, 2) + " s" + (figures.warm_up_s > 0 ? ", of which the first " + number(figures.warm_up_s, 2) + " s are not counted" : "")
        + "; seed " + figures.seed + ". The same file and seed give the same result."],
    ];
    figures.gpus.forEach((gpu) => facts.push([gpu.name, "sharing " + gpu.sharing.toLowerCase() + "; busy " + percent(gpu.busy_percent, 1)
      + ", lost between turns " + percent(gpu.lost_percent, 1) + ", " + number(gpu.turns_per_s, 1) + " turns, " + number(gpu.switches_per_s, 1) + " switches and "
      + number(gpu.preemptions_per_s, 1) + " preemptions a second; the scheduler was stepped " + number(gpu.steps_per_s, 0) + " times a second"]));
    facts.push(
      ["Decisions", "By the scheduler that shares real GPUs, with virtual time as its clock."],
      ["Worst second", "The largest distance of what a tenant held from what it was entitled to, over windows of one second that begin every 50 ms. What is lost between turns is nobody's part."],
      ["Machine", figures.machine],
      ["Version", "vgpu " + figures.version + ", commit " + figures.commit + ", " + figures.date]);
    facts.forEach(([term, text]) => {
      element(byId("how"), "dt", term);
      element(byId("how"), "dd", text);
    });
    [
      "Nothing ran on a GPU. Kernels take exactly the time that the file says; on a GPU they slow each other down by caches and memory.",
      "What it costs to pass on a turn, and how far programs launch ahead, are assumptions that the file can change (costs).",
      "Memory is checked for admission alone: nothing allocates.",
    ].concat(figures.tenants.length > mostShown ? ["Plots show the first " + mostShown + " of " + figures.tenants.length + " tenants; the tables all."] : [])
      .forEach((text) => element(byId("limits"), "li", text));
    byId("footer").textContent = "Plots: Apache ECharts, Apache-2.0. This file needs no network.";
  }

  header();
  shares();
  latencies();
  timelines();
  how();
})();
