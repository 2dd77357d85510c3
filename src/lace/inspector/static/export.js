// The only script of an exported file: shows the records whose text contains every word of the filter.
"use strict";
const field = document.getElementById("filter");
const told = document.getElementById("filtered");
const records = Array.from(document.querySelectorAll("details.record"), (one) => [one, one.textContent.toLowerCase()]);
document.getElementById("filter-bar").hidden = false;
field.addEventListener("input", () => {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const [one, text] of records) {
    one.hidden = !words.every((word) => text.includes(word));
    if (!one.hidden) shown += 1;
  }
  told.textContent = words.length ? `${shown} of ${records.length}` : "";
});
