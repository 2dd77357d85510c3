// The page: shows a scene, keeps it in the address, and asks Python about it.
import { Python } from "./asking.mjs";
import { badge, byId, bytes, make, short } from "./making.mjs";
import { SideView } from "./side.mjs";
import { packed, unpacked } from "./state.mjs";

const DELAY_MS = 250;
const WEATHER = ["cut", "delay", "corrupt"];

class Page {
  constructor(first) {
    this.begin = first.begin;
    this.version = 0;  // of the scene, counted by changes
    this.canPlay = false;  // as soon as rules without errors were answered
    this.views = [0, 1].map((number) => new SideView(number, this.begin.people, this));
    this.python = new Python({ onReady: (about) => this.ready(about), onFailed: (why) => this.failed(why) });
    this.setUpScenes();
    this.setUpWire();
    addEventListener("hashchange", () => this.load(first));
    this.load(first);
  }

  // --- the scene ------------------------------------------------------------------------------------------------

  async load(first) {
    const text = location.hash.slice(1);
    if (text && text === this.written) return;
    this.trouble("");
    if (!text) {
      this.use(structuredClone(this.begin.presets[0].scene), 0);
      this.answered(first.check);
      return;
    }
    try {
      this.use(await unpacked(text), -1);
    } catch (error) {
      this.use(structuredClone(this.begin.presets[0].scene), 0);
      this.trouble(`This link does not hold a scene: ${error.message}`);
    }
  }

  use(scene, preset) {
    this.scene = scene;
    byId("preset").value = String(preset);
    byId("story").textContent = preset < 0 ? "A scene from a link." : this.begin.presets[preset].story;
    byId("why").hidden = true;
    this.show();
    this.check(0);
  }

  show() {
    this.views.forEach((view, number) => view.show(this.scene.laces[number]));
    const weather = this.scene.weather;
    for (const name of WEATHER) byId(name).setAttribute("aria-pressed", String(Boolean(weather[name])));
    if (Number(byId("seed").value) !== weather.seed) byId("seed").value = weather.seed;
  }

  changed(number, change) {
    Object.assign(this.scene.laces[number], change);
    this.anew();
  }

  added(number, given) {
    const records = this.scene.laces[number].records;
    const minute = Math.max(0, ...this.scene.laces.flatMap((side) => side.records.map((record) => record.minute))) + 5;
    records.push({ ...given, minute: Math.min(minute, 1439) });
    this.anew();
  }

  removed(number, place) {
    this.scene.laces[number].records.splice(place, 1);
    this.anew();
  }

  // What was changed changes everything that was played, so the laces begin where the scene says.
  anew() {
    this.trouble("");
    this.scene.runs = [];
    byId("why").hidden = true;
    this.show();
    this.check(DELAY_MS);
  }

  async remember() {
    this.written = await packed(this.scene);
    history.replaceState(null, "", `#${this.written}`);
  }

  // --- Python ---------------------------------------------------------------------------------------------------

  ready({ seconds, version }) {
    const status = byId("status");
    status.textContent = `Python ${version}, ready after ${seconds.toFixed(1)} s`;
    status.classList.add("ready");
    this.busy(false);
  }

  failed(why) {
    const status = byId("status");
    status.textContent = `Python could not be loaded: ${why}`;
    status.classList.add("failed");
  }

  trouble(text, isAnswered = false) {
    this.isAnswered = isAnswered;  // it came as an answer, so the next answer can take it back
    byId("trouble").replaceChildren(...(text ? [make("p", { class: "notice bad" }, text)] : []));
  }

  check(delay) {
    this.version += 1;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask("check"), delay);
  }

  async ask(kind) {
    const version = this.version;
    try {
      const answer = await this.python.ask(kind, { scene: this.scene });
      if (answer === null || version !== this.version) return;  // somebody typed on: a newer question is on its way
      if (this.isAnswered) this.trouble("");  // what is wrong with a link stays until something is changed
      this.answered(answer);
      await this.remember();
    } catch (error) {
      this.trouble(error.message, true);
    } finally {
      this.busy(false);
    }
  }

  busy(isBusy) {
    document.body.classList.toggle("busy", isBusy);
    byId("exchange").disabled = isBusy || !this.python.isReady || !this.canPlay;
  }

  answered(answer) {
    this.scene = answer.scene;
    this.canPlay = Boolean(answer.stage);
    this.busy(false);
    this.views.forEach((view, number) => view.findings(answer.findings[number]));
    if (!answer.stage) {
      byId("ended").replaceChildren(make("span", { class: "note" }, "Mend the rules to exchange."));
      return;
    }
    const { laces, runs } = answer.stage;
    this.views.forEach((view, number) => view.lace(laces[number].records, laces[1 - number].records, answer.counts[number], this.scene.laces[number].records));
    this.showExchanges(runs.map(({ crossings }) => crossings[0]));
  }

  // --- controls -------------------------------------------------------------------------------------------------

  setUpScenes() {
    const choices = this.begin.presets.map((preset, number) => make("option", { value: number }, preset.title));
    byId("preset").replaceChildren(...choices, make("option", { value: -1, disabled: true, hidden: true }, "a link"));
    byId("preset").addEventListener("change", (event) => {
      const number = Number(event.target.value);
      this.trouble("");
      this.use(structuredClone(this.begin.presets[number].scene), number);
    });
    byId("scenes").addEventListener("submit", (event) => event.preventDefault());
    byId("share").addEventListener("click", () => this.share());
  }

  async share() {
    await this.remember();
    try {
      await navigator.clipboard.writeText(location.href);
      byId("shared").textContent = "Copied.";
    } catch {
      byId("shared").textContent = "It is the address of this page: copy it from there.";
    }
    setTimeout(() => { byId("shared").textContent = ""; }, 4000);
  }

  setUpWire() {
    for (const name of WEATHER) byId(name).addEventListener("click", () => this.weather({ [name]: !this.scene.weather[name] }));
    byId("seed").addEventListener("change", (event) => this.weather({ seed: Math.min(999_999, Math.max(0, Math.trunc(Number(event.target.value)) || 0)) }));
    byId("reseed").addEventListener("click", () => this.weather({ seed: (this.scene.weather.seed * 7919 + 12_345) % 1_000_000 }));
    byId("anew").addEventListener("click", () => { this.anew(); });
    byId("exchange").addEventListener("click", () => {
      this.busy(true);
      clearTimeout(this.timer);
      this.ask("play");
    });
  }

  weather(change) {
    Object.assign(this.scene.weather, change);
    this.show();
    this.check(DELAY_MS);
  }

  // --- what came of it ------------------------------------------------------------------------------------------

  showExchanges(exchanges) {
    byId("anew").hidden = !exchanges.length;
    byId("exchange").textContent = exchanges.length ? "Exchange again" : "Exchange";
    byId("talk").hidden = !exchanges.length;
    if (!exchanges.length) {
      byId("ended").replaceChildren();
      byId("talk-note").textContent = "";
      return;
    }
    const last = exchanges.at(-1);
    const ends = last.outcomes.map((outcome, number) => make("li", {},
      badge(outcome.complete ? "complete" : "broken off", outcome.complete ? "good" : "bad"), " ",
      `${this.begin.people[number].name}: ${outcome.words}; ${outcome.received.length} received`));
    byId("ended").replaceChildren(make("ul", { class: "ends" }, ends, last.wire.map((words) => make("li", { class: "note" }, words))));
    byId("talk-note").textContent = `Exchange ${exchanges.length}: ${bytes(last.bytes[0])} by ${this.begin.people[0].name}, ${bytes(last.bytes[1])} by ${this.begin.people[1].name}, ${last.seconds.toFixed(2)} s on this wire`;
    byId("items").replaceChildren(this.table(last));
  }

  table({ items, left_out: leftOut }) {
    const columns = ["At", "Who", "Item", "What it says", "Size"];
    const head = make("thead", {}, make("tr", {}, columns.map((name) => make("th", { scope: "col", class: name === "Size" ? "right" : "" }, name))));
    const body = make("tbody", {}, items.map((item) => {
      const cells = [`${item.seconds.toFixed(3)} s`, make("span", { class: `who-${item.who === this.begin.people[0].name ? 0 : 1}` }, item.who), item.kind, this.said(item), bytes(item.size)];
      return make("tr", {}, cells.map((cell, number) => make("td", { "data-column": columns[number], class: number === 4 ? "right" : "" }, cell)));
    }));
    const more = leftOut ? make("p", { class: "note" }, `… and ${leftOut} more`) : null;
    return make("div", {}, make("table", { class: "talk" }, make("caption", { class: "visually-hidden" }, "What was said"), head, body), more);
  }

  said(item) {
    const name = item.kind === "record" ? `${item.name || "a record"} (${short(item.text)})` : item.text;
    const explained = item.explained && item.explained !== item.text ? make("p", { class: "note" }, item.explained) : null;
    if (!item.raw.trim()) return make("div", {}, name, explained);
    return make("div", {}, make("details", {}, make("summary", {}, name), make("pre", { tabindex: "0", "aria-label": "The bytes" }, item.raw)), explained);
  }

  // --- why ------------------------------------------------------------------------------------------------------

  async why(record, sender) {
    const people = this.begin.people;
    try {
      const walked = await this.python.ask("why", { scene: this.scene, record: record.hash, from: people[sender].name, to: people[1 - sender].name });
      if (walked === null) return;
      byId("why-title").textContent = `${walked.record.name.length > 40 ? short(walked.record.name) : walked.record.name}, from ${walked.from} to ${walked.to}`;
      byId("gates").replaceChildren(make("p", { class: `notice ${walked.stops ? "bad" : "good"}` }, walked.verdict), make("ol", {}, walked.gates.map(gate)));
      byId("why").hidden = false;
      byId("why").focus({ preventScroll: true });
      byId("why").scrollIntoView({ block: "center" });
    } catch (error) {
      this.trouble(error.message);
    }
  }
}

function gate({ side, gate: name, open, said, because, remedy }) {
  const [words, kind] = open === true ? ["open", "good"] : open === false ? ["shut", "bad"] : ["unknown", "warn"];
  const head = [make("strong", {}, name), " ", badge(`${side}, ${words}`, kind)];
  const parts = [
    because ? make("details", { open: open === false }, make("summary", {}, head), make("pre", { tabindex: "0", "aria-label": "Why" }, because)) : make("div", {}, head),
    said && said !== "yes" && said !== "no" ? make("p", { class: "note" }, said) : null,
    remedy && open === false ? make("p", { class: "nearest" }, remedy) : null,
  ];
  return make("li", {}, parts);
}

try {
  new Page(await (await fetch("first.json")).json());
} catch (error) {
  byId("status").textContent = `The page could not begin: ${error.message}`;
}
