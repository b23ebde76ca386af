"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const form = document.querySelector(".filters");
  const entries = all(".entry");
  const buttons = all("button[data-group]", form);
  const { clause, text } = form.elements;
  const texts = new Map(entries.map((entry) => [entry, entry.querySelector("summary").textContent.toLowerCase()]));

  function wanted() {
    const groups = new Map();
    for (const button of buttons) {
      if (button.getAttribute("aria-pressed") !== "true") continue;
      const { group, value } = button.dataset;
      groups.set(group, [...(groups.get(group) ?? []), value]);
    }
    if (clause.value) groups.set("clause", [clause.value]);
    return groups;
  }

  function apply() {
    const groups = wanted();
    const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const entry of entries) {
      const fits = [...groups].every(([group, values]) => {
        const has = entry.dataset[group].split(" ");
        return values.some((value) => has.includes(value));
      });
      const found = fits && words.every((word) => texts.get(entry).includes(word));
      entry.hidden = !found;
      shown += found ? 1 : 0;
    }
    form.querySelector(".shown").textContent = `${shown} of ${entries.length} shown`;
    document.querySelector(".none").hidden = shown > 0;
  }

  function press(button, on) {
    button.setAttribute("aria-pressed", String(on));
  }

  function clear() {
    for (const button of buttons) press(button, false);
    clause.value = "";
    text.value = "";
    apply();
  }

  function reveal() {
    const entry = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!entry?.classList.contains("entry")) return;
    if (entry.hidden) clear();
    entry.open = true;
    entry.scrollIntoView();
    entry.querySelector("summary").focus({ preventScroll: true });
  }

  for (const button of buttons) {
    button.addEventListener("click", () => {
      press(button, button.getAttribute("aria-pressed") !== "true");
      apply();
    });
  }
  for (const button of all("button[data-clause]")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      clause.value = button.dataset.clause;
      apply();
      document.getElementById("scenarios").focus();
    });
  }
  for (const button of all("button[data-all]", form)) {
    button.addEventListener("click", () => {
      for (const entry of entries) if (!entry.hidden) entry.open = button.dataset.all === "open";
    });
  }
  const themes = all("button[data-theme]");
  for (const button of themes) {
    button.addEventListener("click", () => {
      for (const other of themes) press(other, other === button);
      if (button.dataset.theme) document.documentElement.dataset.theme = button.dataset.theme;
      else delete document.documentElement.dataset.theme;
    });
  }
  clause.addEventListener("change", apply);
  text.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.querySelector("button[data-clear]").addEventListener("click", clear);
  window.addEventListener("hashchange", reveal);
  form.hidden = false;
  document.querySelector(".themes").hidden = false;
  apply();
  reveal();
})();
