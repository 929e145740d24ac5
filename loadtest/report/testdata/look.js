// What a test sees of an open page, as one object. It is run in the browser.
(() => {
  const found = { width: innerWidth, wide: document.scrollingElement.scrollWidth, charts: [], overlaps: [], outside: [], contrast: [], texts: 0 };
  const visible = (e) => {
    const s = getComputedStyle(e);
    const r = e.getBoundingClientRect();
    return s.visibility !== "hidden" && s.display !== "none" && r.width > 0 && r.height > 0 && e.checkVisibility();
  };
  const name = (e) => e.tagName.toLowerCase() + (e.className && e.className.baseVal === undefined ? "." + e.className : "") + " " + JSON.stringify(e.textContent.trim().slice(0, 60));

  // Colours and their contrast by WCAG 2.1, relative luminance.
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgb = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const luminance = (c) => {
    const [r, g, b] = c.map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [x, y] = [luminance(a), luminance(b)].sort((m, n) => n - m);
    return (x + 0.05) / (y + 0.05);
  };
  const background = (e) => {
    for (; e; e = e.parentElement) {
      const c = rgb(getComputedStyle(e).backgroundColor);
      if (c[3] === 255) return c;
    }
    return rgb(getComputedStyle(document.documentElement).colorScheme.includes("dark") ? "#000" : "#fff");
  };

  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const seen = new Set();
  for (let n = walker.nextNode(); n; n = walker.nextNode()) {
    const e = n.parentElement;
    if (!n.textContent.trim() || seen.has(e) || ["SCRIPT", "STYLE"].includes(e.tagName) || e.closest(".spoken") || !visible(e)) continue;
    seen.add(e);
    found.texts++;
    const ratio = contrast(rgb(getComputedStyle(e).color), background(e));
    if (ratio < 4.5) found.contrast.push(name(e) + " has " + ratio.toFixed(2));
    if (!e.closest(".scroll")) {
      const range = document.createRange();
      range.selectNodeContents(n);
      for (const r of range.getClientRects()) {
        if (r.left < -0.5 || r.right > innerWidth + 0.5) found.outside.push(name(e));
      }
    }
  }

  const overlap = (elements, what) => {
    const boxes = elements.filter(visible).map((e) => [e, e.getBoundingClientRect()]);
    boxes.forEach(([e, a], i) => {
      for (const [f, b] of boxes.slice(i + 1)) {
        if (a.left < b.right - 0.5 && b.left < a.right - 0.5 && a.top < b.bottom - 0.5 && b.top < a.bottom - 0.5) found.overlaps.push(what + ": " + name(e) + " and " + name(f));
      }
    });
  };

  for (const figure of document.querySelectorAll(".chart")) {
    const box = figure.getBoundingClientRect();
    const title = figure.dataset.title;
    const labels = [...figure.querySelectorAll(".x span, .y span")];
    overlap([...labels, ...figure.querySelectorAll("figcaption > *, .legend .key, .readout")], title);
    for (const e of figure.querySelectorAll(".x span, .y span, .key, .value, figcaption > *")) {
      const r = e.getBoundingClientRect();
      if (visible(e) && (r.left < box.left - 0.5 || r.right > box.right + 0.5 || r.bottom > box.bottom + 0.5)) found.outside.push(title + ": " + name(e));
    }
    const area = figure.querySelector(".area").getBoundingClientRect();
    const paint = background(figure.querySelector(".area"));
    const chart = { title, width: area.width, height: area.height, label: figure.querySelector(".area").getAttribute("aria-label"), x: labels.filter((e) => e.closest(".x") && visible(e) && e.textContent).length, y: labels.filter((e) => e.closest(".y") && visible(e)).length, lines: [] };
    for (const g of figure.querySelectorAll(".area svg g")) {
      const path = g.querySelector(".line");
      const style = getComputedStyle(path);
      const d = path.getAttribute("d");
      const r = path.getBoundingClientRect();
      chart.lines.push({
        points: (d.match(/[ML]/g) || []).length,
        width: r.width,
        inside: r.left >= area.left - 4 && r.right <= area.right + 4 && r.top >= area.top - 2 && r.bottom <= area.bottom + 2,
        contrast: contrast(rgb(style.stroke), paint),
        look: style.stroke + " " + style.strokeDasharray,
      });
    }
    found.charts.push(chart);
  }
  for (const tiles of document.querySelectorAll(".tiles")) {
    overlap([...tiles.querySelectorAll("dt, strong, dd span")], "tiles");
    for (const e of tiles.querySelectorAll(".tile")) if (e.scrollWidth > e.clientWidth) found.outside.push(name(e));
  }
  for (const bar of document.querySelectorAll(".bar")) overlap([...bar.children], "phases");
  return found;
})();
