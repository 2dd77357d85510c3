// Everything works without this file; with it, forms answer while somebody types and live pages refresh themselves.
"use strict";

const DELAY_MS = 250;
const ADDRESS_LENGTH = 30000;  // a longer one is not kept: servers and browsers would cut it

function setUpCopying(root) {
  if (!navigator.clipboard) return;
  for (const button of root.querySelectorAll("button[data-copy]")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.dataset.copy);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  }
}

// Marks the places of errors in the text that lies under the textarea, and says the one where the caret is.
class Editor {
  constructor(textarea) {
    this.textarea = textarea;
    this.under = textarea.parentElement.querySelector(".editor-under");
    this.note = document.getElementById(textarea.getAttribute("aria-describedby"));
    this.errors = [];
    textarea.addEventListener("scroll", () => { this.under.scrollTop = textarea.scrollTop; });
    textarea.addEventListener("input", () => this.draw());
    for (const moved of ["keyup", "click", "focus"]) textarea.addEventListener(moved, () => this.tell());
  }

  show(errors) {
    this.errors = errors;
    this.textarea.setAttribute("aria-invalid", errors.some((one) => !one.doubt) ? "true" : "false");
    this.draw();
    this.tell();
  }

  draw() {
    const lines = this.textarea.value.split("\n");
    this.under.replaceChildren();
    lines.forEach((line, index) => {
      const error = this.errors.find((one) => one.line === index + 1);
      if (error) this.drawError(line, error.column - 1, error.doubt);
      else this.under.append(line);
      this.under.append("\n");
    });
    this.under.scrollTop = this.textarea.scrollTop;
  }

  drawError(line, column, isDoubt) {
    const characters = Array.from(line);  // columns count characters, not UTF-16 units
    const start = Math.min(column, Math.max(0, characters.length - 1));
    const rest = characters.slice(start).join("");
    const word = (rest.match(/^[A-Za-z0-9_]+/) || [characters[start] || " "])[0];
    const mark = document.createElement("mark");
    mark.textContent = word;
    if (isDoubt) mark.className = "doubt";
    this.under.append(characters.slice(0, start).join(""), mark, rest.slice(word.length));
  }

  tell() {
    const line = this.textarea.value.slice(0, this.textarea.selectionStart).split("\n").length;
    const here = this.errors.find((one) => one.line === line);
    const said = here ? `${here.line}:${here.column} ${here.message}${here.advice ? " · " + here.advice : ""}` : "";
    if (this.note && this.note.textContent !== said) this.note.textContent = said;
  }
}

// Sends a form and puts the answer where the old one stood; a later answer overtakes an earlier question.
class LiveForm {
  constructor(form) {
    this.form = form;
    this.editors = Array.from(form.querySelectorAll(".editor textarea"), (one) => new Editor(one));
    form.addEventListener("submit", (event) => {
      if (event.submitter && event.submitter.dataset.plain) return;
      event.preventDefault();
      this.send(event.submitter);
    });
    form.addEventListener("input", (event) => {
      if (!event.target.closest("[data-live]")) return;
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.send(null), DELAY_MS);
    });
    this.read();
  }

  get outcome() { return this.form.querySelector("#outcome"); }

  read() {
    const errors = JSON.parse(this.outcome.dataset.errors || "[]");
    for (const editor of this.editors) editor.show(errors.filter((one) => (one.field || "rules") === editor.textarea.name));
  }

  // What the form says goes into the address, so that it can be copied, and reloading or going back loses nothing.
  keep(body) {
    const usual = new Set(Array.from(this.form.querySelectorAll("textarea[data-usual]"))
      .filter((area) => area.value === area.defaultValue).map((area) => area.name));
    const state = new URLSearchParams(Array.from(body)
      .filter(([name, value]) => value !== "" && !name.startsWith("(") && !usual.has(name)));
    const address = `${this.form.action}?${state}`;
    if (address.length <= ADDRESS_LENGTH) history.replaceState(null, "", address);
  }

  async send(submitter) {
    if (this.running) this.running.abort();
    const running = this.running = new AbortController();
    const body = new URLSearchParams(new FormData(this.form));
    if (submitter && submitter.name) {
      body.set(submitter.name, submitter.value);
      if (submitter.name === "goal" && this.form.elements.goal) this.form.querySelector("input[name=goal]").value = submitter.value;
    }
    this.outcome.classList.add("waiting");
    try {
      const answer = await fetch(this.form.action + "?format=fragment", { method: "POST", body, signal: running.signal });
      const text = await answer.text();
      const parsed = new DOMParser().parseFromString(text, "text/html").getElementById("outcome");
      if (!parsed) throw new Error(text.slice(0, 200));
      this.outcome.replaceWith(parsed);
      setUpCopying(parsed);
      this.read();
      this.keep(body);
      if (submitter && submitter.name === "goal") this.outcome.querySelector("#explanation")?.scrollIntoView({ block: "start" });
    } catch (error) {
      if (error.name === "AbortError") return;
      this.outcome.classList.remove("waiting");
      this.outcome.textContent = `The inspector does not answer: ${error.message}`;
    }
  }
}

// A part of a page that is fetched again every second, as long as somebody looks at it.
class Refreshed {
  constructor(part) {
    this.part = part;
    this.wait();
  }

  wait() { setTimeout(() => this.fetch(), Number(this.part.dataset.refresh)); }

  async fetch() {
    if (document.hidden) { this.wait(); return; }
    try {
      const address = new URL(location.href);
      address.searchParams.set("format", "fragment");
      const text = await (await fetch(address)).text();
      const parsed = new DOMParser().parseFromString(text, "text/html").getElementById(this.part.id);
      if (parsed) {
        const open = new Set(Array.from(this.part.querySelectorAll("details[open][id]"), (one) => one.id));
        for (const one of parsed.querySelectorAll("details[id]")) one.open = one.open || open.has(one.id);
        this.part.replaceWith(parsed);
        this.part = parsed;
      }
    } catch (error) {
      this.part.classList.add("waiting");
    }
    this.wait();
  }
}

// `/` goes to the search field, g and a letter to a page, c copies the link, ? shows all of it.
function setUpKeys() {
  const keys = document.getElementById("keys");
  if (!keys) return;  // the playground takes only the editor from here
  const copy = document.getElementById("copy-link");
  const show = document.getElementById("show-keys");
  show.hidden = false;
  show.addEventListener("click", () => keys.showModal());
  if (navigator.clipboard) {
    copy.hidden = false;
    copy.addEventListener("click", async () => {
      await navigator.clipboard.writeText(location.href);
      copy.textContent = "Copied";
      setTimeout(() => { copy.textContent = "Copy link"; }, 1500);
    });
  }
  let went = false;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, textarea, select")) return;
    if (keys.open) return;
    if (went) {
      went = false;
      const found = document.querySelector(`.banner nav a[data-key="${CSS.escape(event.key)}"]`);
      if (found) found.click();
    } else if (event.key === "/") {
      const field = document.getElementById("search") || document.querySelector("main input:not([type=hidden]), main textarea");
      if (field) { event.preventDefault(); field.focus(); field.select(); }
    } else if (event.key === "?") {
      keys.showModal();
    } else if (event.key === "c" && !copy.hidden) {
      copy.click();
    } else if (event.key === "g") {
      went = true;
      setTimeout(() => { went = false; }, 1200);
    }
  });
}

setUpCopying(document);
setUpKeys();
for (const form of document.querySelectorAll("form:has(#outcome)")) new LiveForm(form);
for (const part of document.querySelectorAll("[data-refresh]")) new Refreshed(part);
