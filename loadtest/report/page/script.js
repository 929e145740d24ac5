"use strict";
// Shows the values under the pointer. The page is complete without it.
for (const figure of document.querySelectorAll(".chart")) {
  const data = JSON.parse(figure.querySelector("script").textContent);
  const area = figure.querySelector(".area");
  const cursor = figure.querySelector(".cursor");
  const readout = figure.querySelector(".readout");
  const note = readout.textContent;
  if (!data.x || data.x.length === 0) continue;
  area.addEventListener("pointermove", (event) => {
    const box = area.getBoundingClientRect();
    const at = 100 * (event.clientX - box.left) / box.width;
    let nearest = 0;
    data.x.forEach((x, i) => {
      if (Math.abs(x - at) < Math.abs(data.x[nearest] - at)) nearest = i;
    });
    cursor.hidden = false;
    cursor.style.left = data.x[nearest] + "%";
    const values = data.names.map((name, i) => name + " " + (data.text[i][nearest] ?? "-"));
    readout.textContent = data.label[nearest] + ": " + values.join(", ");
  });
  area.addEventListener("pointerleave", () => {
    cursor.hidden = true;
    readout.textContent = note;
  });
}
