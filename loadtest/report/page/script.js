"use strict";
// Tells the values under the pointer, hides lines and switches to a
// logarithmic axis. The page is complete without it.
(() => {
  const box = 1000;
  const trim = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
  // What lies in the midst goes to the even neighbour, as in the tables.
  const digits = (v, n) => {
    const x = v * 10 ** n;
    return (x % 1 === 0.5 && Math.floor(x) % 2 === 0 ? Math.floor(x) / 10 ** n : v).toFixed(n);
  };
  // Figures are written as the tables write them.
  const write = {
    "ms": (v) => {
      if (v <= 0) return "0";
      if (v < 1) return digits(v * 1000, 0) + "µs";
      if (v < 10) return digits(v, 2) + "ms";
      if (v < 100) return digits(v, 1) + "ms";
      if (v < 1000) return digits(v, 0) + "ms";
      if (v < 10000) return digits(v / 1000, 2) + "s";
      if (v < 60000) return digits(v / 1000, 1) + "s";
      return Math.floor(v / 60000) + "m" + Math.floor((v % 60000) / 1000) + "s";
    },
    "/s": (v) => (v >= 1000 ? digits(v, 0) : v >= 100 ? digits(v, 1) : digits(v, 2)) + "/s",
    "cores": (v) => digits(v, 2) + " cores",
    "": (v) => trim(digits(v, 3)),
    "B": (v) => {
      const units = ["B", "kB", "MB", "GB", "TB", "PB"];
      let i = 0;
      for (; v >= 999.95 && i < units.length - 1; i++) v /= 1000;
      return digits(v, i > 0 && v < 10 ? 1 : 0) + " " + units[i];
    },
  };
  const clock = (seconds) => {
    const s = Math.round(seconds);
    const h = Math.floor(s / 3600);
    const m = Math.floor((s % 3600) / 60);
    return (h > 0 ? h + "h" : "") + (m > 0 || h > 0 ? m + "m" : "") + (s % 60 > 0 || s < 60 ? (s % 60) + "s" : "");
  };

  function setUp(figure, group) {
    const data = JSON.parse(figure.querySelector("script").textContent);
    if (!data.x || data.x.length === 0) return;
    const area = figure.querySelector(".area");
    const cursor = figure.querySelector(".cursor");
    const readout = figure.querySelector(".readout");
    const keys = [...figure.querySelectorAll(".key")];
    const shapes = [...area.querySelectorAll("svg g")];
    const share = (x) => (x - data.from) / (data.to - data.from);
    let at = -1;

    const chart = {
      data,
      show(i) {
        at = i;
        const spoken = [];
        cursor.hidden = i < 0;
        if (i >= 0) cursor.style.left = 100 * share(data.x[i]) + "%";
        keys.forEach((key, n) => {
          const value = key.querySelector(".value");
          const line = data.lines[n];
          if (i < 0) {
            value.textContent = value.dataset.rest;
            return;
          }
          const y = line.y[i] ?? null;
          let text = y === null ? "–" : write[data.unit](y);
          if (y !== null && line.low && line.low[i] < line.high[i]) {
            text += " (" + write[data.unit](line.low[i]) + " to " + write[data.unit](line.high[i]) + ")";
          }
          value.textContent = text;
          if (key.getAttribute("aria-pressed") === "true") spoken.push(line.name + " " + (y === null ? "no value" : text));
        });
        readout.textContent = "";
        if (i >= 0) {
          const phase = (data.phases || []).find((p) => i <= p.to);
          readout.textContent = data.labels ? data.labels[i] : clock(data.x[i]) + (phase ? ", " + phase.name : "");
        }
        area.setAttribute("aria-valuenow", Math.max(i, 0));
        area.setAttribute("aria-valuetext", i >= 0 ? readout.textContent + ": " + spoken.join(", ") : "arrow keys walk along the chart");
      },
      showX(x) {
        let near = 0;
        data.x.forEach((v, i) => {
          if (Math.abs(v - x) < Math.abs(data.x[near] - x)) near = i;
        });
        chart.show(near);
      },
    };
    // Charts over the same axis follow each other.
    const along = () => group.filter((c) => !c.data.labels === !data.labels && c.data.to === data.to);
    const move = (x) => along().forEach((c) => c.showX(x));
    // The last answers of a step are a point beside the next one, at the same
    // place as the page has it: keys go by number.
    const step = (i) => along().forEach((c) => (c.data.x.length === data.x.length ? c.show(i) : c.showX(data.x[i])));
    const leave = () => along().forEach((c) => c.show(-1));
    const follow = (event) => {
      const r = area.getBoundingClientRect();
      move(data.from + ((event.clientX - r.left) / r.width) * (data.to - data.from));
    };
    area.addEventListener("pointermove", follow);
    area.addEventListener("pointerdown", follow);
    area.addEventListener("pointerleave", (event) => {
      if (event.pointerType !== "touch") leave();
    });
    area.addEventListener("blur", leave);
    area.addEventListener("keydown", (event) => {
      const last = data.x.length - 1;
      const to = { ArrowLeft: Math.max(at - 1, 0), ArrowRight: Math.min(at + 1, last), Home: 0, End: last }[event.key];
      if (event.key === "Escape") leave();
      if (to === undefined) return;
      event.preventDefault();
      step(to);
    });
    keys.forEach((key, n) => {
      key.disabled = false;
      key.addEventListener("click", () => {
        const shown = key.getAttribute("aria-pressed") !== "true";
        key.setAttribute("aria-pressed", shown);
        shapes[n].style.display = shown ? "" : "none";
      });
    });
    // To those who hear the page a chart is a picture without a script, and with
    // one a slider, whose keys reach the page and whose values are read out.
    area.setAttribute("role", "slider");
    area.setAttribute("aria-valuemin", 0);
    area.setAttribute("aria-valuemax", data.x.length - 1);
    chart.show(-1);
    if (data.unit === "ms") addLogarithm(figure, data, shapes, share);
    group.push(chart);
  }

  // A stall of a second beside answers of 5 ms: on a linear axis the one hides
  // the other.
  function addLogarithm(figure, data, shapes, share) {
    const all = data.lines.flatMap((l) => l.y).filter((v) => v > 0);
    if (all.length === 0) return;
    const low = 10 ** Math.floor(Math.log10(Math.min(...all)));
    const high = 10 ** Math.ceil(Math.log10(Math.max(...all) * 1.0001));
    const rise = (v) => Math.log10(Math.max(v, low) / low) / Math.log10(high / low);
    const path = (y) => {
      let d = "";
      let pen = "M";
      y.forEach((v, i) => {
        if (v === null) {
          pen = "M";
          return;
        }
        d += pen + Math.round(box * share(data.x[i])) + " " + Math.round(box * (1 - rise(v)));
        if (pen === "M" && (y[i + 1] ?? null) === null) d += "m-4 0h8";
        pen = "L";
      });
      return d;
    };
    const yAxis = figure.querySelector(".y");
    const rules = figure.querySelector(".rules");
    const lines = shapes.map((g) => g.querySelector(".line"));
    const linear = { y: yAxis.innerHTML, rules: rules.innerHTML, paths: lines.map((l) => l.getAttribute("d")) };
    const button = document.createElement("button");
    button.type = "button";
    button.className = "switch";
    button.textContent = "log axis";
    button.setAttribute("aria-pressed", "false");
    figure.querySelector("figcaption").append(button);
    button.addEventListener("click", () => {
      const on = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", on);
      lines.forEach((l, i) => l.setAttribute("d", on ? path(data.lines[i].y) : linear.paths[i]));
      yAxis.innerHTML = linear.y;
      rules.innerHTML = linear.rules;
      if (!on) return;
      yAxis.replaceChildren();
      rules.replaceChildren();
      const steps = high / low <= 100 ? [1, 2, 5] : [1];
      for (let decade = low; decade <= high * 1.0001; decade *= 10) {
        for (const step of steps) {
          const v = decade * step;
          if (v > high * 1.0001) break;
          const label = document.createElement("span");
          label.textContent = v < 1 ? trim(digits(v * 1000, 3)) + "µs" : v < 1000 ? trim(digits(v, 3)) + "ms" : trim(digits(v / 1000, 3)) + "s";
          const rule = document.createElement("div");
          rule.className = "rule";
          label.style.bottom = rule.style.bottom = 100 * rise(v) + "%";
          yAxis.append(label);
          rules.append(rule);
        }
      }
    });
  }

  for (const section of document.querySelectorAll("section")) {
    const group = [];
    for (const figure of section.querySelectorAll(".chart")) setUp(figure, group);
  }
  // On paper nothing can be opened.
  window.addEventListener("beforeprint", () => {
    for (const d of document.querySelectorAll("details")) d.open = true;
  });
})();
