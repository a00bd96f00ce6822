"use strict";
/** Common code of the reports: elements, tables, and plots in the page's colours. */
const page = (function () {
  const byId = (id) => document.getElementById(id);
  const narrow = () => window.innerWidth < 640;
  const css = (name) =>
    getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const number = (value, digits) =>
    value === null || value === undefined ? "–" : value.toFixed(digits);
  const percent = (value, digits) =>
    number(value, digits) + (value === null || value === undefined ? "" : " %");
  const charts = [];

  function element(parent, tag, text, className) {
    const child = document.createElement(tag);
    if (text !== undefined) child.textContent = text;
    if (className) child.className = className;
    parent.appendChild(child);
    return child;
  }

  function table(id, headings, rows, strongRow) {
    const target = byId(id);
    const head = element(element(target, "thead"), "tr");
    headings.forEach((heading) => element(head, "th", heading).scope = "col");
    const body = element(target, "tbody");
    rows.forEach((row, index) => {
      const line = element(body, "tr", undefined, index === strongRow ? "strong" : "");
      row.forEach((cell) => element(line, "td", cell));
    });
  }

  /** Draws now, and again when the theme or the width changes. */
  function chart(target, option) {
    const drawing = {target, option, instance: null};
    charts.push(drawing);
    draw(drawing);
    return drawing;
  }

  function draw(drawing) {
    if (drawing.instance) drawing.instance.dispose();
    drawing.instance = echarts.init(drawing.target, null, {renderer: "svg"});
    drawing.instance.setOption(Object.assign({
      animation: false,
      textStyle: {fontFamily: getComputedStyle(document.body).fontFamily, color: css("ink")},
    }, drawing.option()));
  }

  const axis = (extra) => Object.assign({
    axisLine: {lineStyle: {color: css("line")}},
    axisTick: {show: false},
    axisLabel: {color: css("quiet"), hideOverlap: true},
    splitLine: {lineStyle: {color: css("line"), width: 0.6}},
    nameTextStyle: {color: css("quiet")},
  }, extra);

  const tooltip = (extra) => Object.assign({
    backgroundColor: css("panel"), borderColor: css("line"), textStyle: {color: css("ink")},
    confine: true,
  }, extra);

  const palette = ["c1", "c2", "c3", "c4", "c5", "c6"];


  /** The axis of latency percentiles: 0 is the fastest request, and each step to the right is ten times rarer. */
  const rarity = (slower) => -Math.log10(slower);
  const rarityName = (x) => x === 0 ? "fastest" : number(100 * (1 - Math.pow(10, -x)), Math.max(0, Math.round(x) - 2)) + " %";

  function timelineOption(timeline) {
    const names = timeline.tenants.map((t) => t.name + (t.percent ? " " + t.percent + " %" : ""));
    return {
      grid: {left: narrow() ? 92 : 110, right: 20, top: 10, bottom: 76},
      xAxis: axis({type: "value", min: 0, max: "dataMax", name: "ms", nameLocation: "middle", nameGap: 26,
        axisLabel: {color: css("quiet"), hideOverlap: true, formatter: (x) => String(Math.round(x))}}),
      yAxis: axis({type: "category", inverse: true, data: names,
        axisLabel: {color: css("ink")}, splitLine: {show: false}}),
      dataZoom: [{type: "inside", filterMode: "weakFilter", startValue: 0, endValue: 1000},
        {type: "slider", filterMode: "weakFilter", height: 22, bottom: 12, showDataShadow: false,
          borderColor: css("line"), textStyle: {color: css("quiet")},
          labelFormatter: (x) => Math.round(x) + " ms"}],
      tooltip: tooltip({formatter: (item) => names[item.value[0]] + "<br>from "
        + number(item.value[1], 1) + " ms, for " + number(item.value[2] - item.value[1], 2) + " ms"}),
      series: [{
        type: "custom", clip: true, encode: {x: [1, 2], y: 0},
        data: timeline.spans.map((span) => ({value: span,
          itemStyle: {color: css(palette[span[0] % palette.length])}})),
        renderItem: (params, api) => {
          const from = api.coord([api.value(1), api.value(0)]);
          const to = api.coord([api.value(2), api.value(0)]);
          const height = Math.min(30, api.size([0, 1])[1] * 0.66);
          const shape = echarts.graphic.clipRectByRect(
            {x: from[0], y: from[1] - height / 2, width: Math.max(to[0] - from[0], 0.6), height},
            {x: params.coordSys.x, y: params.coordSys.y, width: params.coordSys.width,
              height: params.coordSys.height});
          return shape && {type: "rect", shape, style: api.style({
            stroke: css("paper"), lineWidth: shape.width > 4 ? 0.7 : 0})};
        },
      }],
    };
  }

  function shareSeries(shares, index, colour, asked) {
    return {
      type: "line", step: "end", symbol: "none", name: shares.tenants[index].name,
      lineStyle: {width: 2, color: css(colour)}, itemStyle: {color: css(colour)},
      areaStyle: {color: css(colour), opacity: 0.12},
      data: shares.series[index].concat(shares.series[index].slice(-1))
        .map((value, i) => [i * shares.bin_s, value]),
      markLine: {silent: true, symbol: "none", lineStyle: {color: css(colour), type: "dashed", width: 1.2},
        label: {formatter: asked + " %", position: "end", color: css(colour), fontWeight: 600},
        data: [{yAxis: asked}]},
    };
  }

  function shareOption(shares, series, extra) {
    const length = shares.series[0].length * shares.bin_s;
    return Object.assign({
      grid: {left: 36, right: 42, top: 12, bottom: 34},
      xAxis: axis({type: "value", min: 0, max: length, splitLine: {show: false},
        axisLabel: {color: css("quiet"), hideOverlap: true, formatter: (x) => number(x, 0) + " s"}}),
      yAxis: axis({type: "value", min: 0, max: 100, interval: 25}),
      tooltip: tooltip({trigger: "axis", formatter: (items) =>
        number(items[0].value[0], 1) + " to " + number(items[0].value[0] + shares.bin_s, 1) + " s<br>"
        + items.map((i) => i.marker + i.seriesName + ": " + percent(i.value[1], 1)).join("<br>")}),
      series,
    }, extra);
  }

  const redraw = () => charts.forEach(draw);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth !== width) {
      width = window.innerWidth;
      redraw();
    }
  });

  return {byId, narrow, css, number, percent, element, table, chart, draw, axis, tooltip, palette,
    rarity, rarityName, timelineOption, shareSeries, shareOption};
})();
