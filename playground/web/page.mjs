// The page: shows a scene, keeps it in the address, and asks Python about it; until Python is there, recordings.
import { Python } from "./asking.mjs";
import { Canvas, key } from "./canvas.mjs";
import { LaceView } from "./lace.mjs";
import { badge, byId, bytes, make, short } from "./making.mjs";
import { recordings } from "./recorded.mjs";
import { Replay } from "./replay.mjs";
import { packed, unpacked } from "./state.mjs";

const DELAY_MS = 250;
const WEATHER = ["cut", "delay", "corrupt"];
const MOST_SEED = 999_999;

class Page {
  constructor(first) {
    this.begin = first.begin;
    this.version = 0;  // of the scene, counted by changes
    this.views = [];
    this.canvas = new Canvas(byId("canvas"), { onLink: (pair) => this.linked(pair), onChoose: (pair) => this.choose(pair) });
    this.replay = new Replay(this.canvas);
    this.setUpScenes();
    this.setUpControls();
    this.setUpTest();
    addEventListener("hashchange", () => this.load(first));
    this.load(first);
    this.recorded = recordings().catch(() => () => undefined);
    this.recorded.then(() => {
      this.python = new Python({ onProgress: (come) => this.loading(come), onReady: (about) => this.ready(about), onFailed: (why) => this.failed(why) });
      this.waiting?.();
    });
    this.pythonIsThere = new Promise((resolve) => { this.waiting = resolve; });
  }

  // --- the scene ------------------------------------------------------------------------------------------------

  async load(first) {
    const text = location.hash.slice(1);
    if (text && text === this.written) return;
    this.trouble("");
    if (!text) {
      this.use(structuredClone(this.begin.presets[0].scene), 0, structuredClone(first.check));
      return;
    }
    try {
      this.use(await unpacked(text), -1);
    } catch (error) {
      this.use(structuredClone(this.begin.presets[0].scene), 0, structuredClone(first.check));
      this.trouble(`This link does not hold a scene: ${error.message}`);
    }
  }

  // A scene that comes from elsewhere is checked by Python before anything is made of it.
  async use(scene, preset, answer = null) {
    this.preset = preset;
    byId("preset").value = String(preset);
    byId("story").textContent = preset < 0 ? "A scene from a link." : this.begin.presets[preset].story;
    this.done = new Set();
    this.tested(null);
    this.showGuide();
    if (answer) { this.show(answer.scene); this.answered(answer); return; }
    this.version += 1;
    const version = this.version;
    if (preset < 0 && !this.python?.isReady) byId("ended").textContent = "The scene of this link is drawn as soon as Python is loaded.";
    this.busy(true);
    try {
      const checked = await this.question("check", { scene });
      if (version !== this.version) return;
      this.show(checked.scene);
      this.answered(checked);
    } catch (error) {
      if (version !== this.version) return;
      if (preset < 0) {
        await this.use(structuredClone(this.begin.presets[0].scene), 0);
        this.trouble(`This link does not hold a scene: ${error.message}`);
      } else this.trouble(error.message);
    } finally {
      this.busy(false);
    }
  }

  // Panels for every lace; they are made again where the laces or their links are others than before.
  show(scene) {
    const shape = JSON.stringify([scene.laces.map((lace) => [lace.name, lace.hostile]), scene.links]);
    this.scene = scene;
    if (shape !== this.shape) {
      const open = new Set(this.views.filter((view) => view.root.querySelector(".rules-fold").open).map((view) => view.name));
      this.shape = shape;
      this.views = scene.laces.map((_, number) => new LaceView(number, scene, this.begin.people, this));
      byId("laces").replaceChildren(...this.views.map((view) => view.root));
      if (scene.laces.length > 2) for (const view of this.views) view.root.querySelector(".rules-fold").open = open.has(view.name);
    }
    for (const view of this.views) { view.scene = scene; view.show(); }
    this.showControls();
  }

  showControls() {
    const { weather, laces, links } = this.scene;
    for (const name of WEATHER) byId(name).setAttribute("aria-pressed", String(Boolean(weather[name])));
    if (Number(byId("seed").value) !== weather.seed) byId("seed").value = weather.seed;
    byId("halves").hidden = laces.length === 2;
    byId("partition").setAttribute("aria-pressed", String(weather.down.length > 0));
    byId("add-lace").hidden = laces.length >= this.begin.most_laces;
    const pair = this.canvas.chosen;
    const isChosen = Boolean(pair) && links.some((one) => key(one) === key(pair));
    byId("link-tools").hidden = !isChosen;
    if (!isChosen) { this.canvas.chosen = null; return; }
    byId("link-name").textContent = pair.map((end) => laces[end].name).join(" – ");
    byId("link-down").textContent = this.isDown(pair) ? "Mend it" : "Take it down";
  }

  changed(number, change, did) {
    Object.assign(this.scene.laces[number], change);
    this.anew(did);
  }

  added(number, given) {
    const records = this.scene.laces[number].records;
    const minute = Math.max(0, ...this.scene.laces.flatMap((lace) => lace.records.map((record) => record.minute))) + 5;
    records.push({ ...given, minute: Math.min(minute, 1439) });
    this.anew();
  }

  removed(number, place) {
    this.scene.laces[number].records.splice(place, 1);
    this.anew("remove");
  }

  // What was changed changes everything that was played, so the laces begin where the scene says.
  anew(did = "") {
    this.trouble("");
    this.scene.runs = [];
    this.tested(null);
    this.show(this.scene);
    this.replay.begin(this.scene);
    byId("ended").replaceChildren();
    this.check(DELAY_MS);
    if (did) this.did(did);
  }

  async remember() {
    this.written = await packed(this.scene);
    history.replaceState(null, "", `#${this.written}`);
  }

  // --- laces and links --------------------------------------------------------------------------------------------

  isDown(pair) { return this.scene.weather.down.some((one) => key(one) === key(pair)); }

  linked([one, other]) {
    const pair = [Math.min(one, other), Math.max(one, other)];
    if (this.scene.links.some((link) => key(link) === key(pair))) { this.choose(pair); return; }
    this.scene.links.push(pair);
    this.canvas.chosen = pair;
    this.anew("links");
  }

  choose(pair) {
    this.canvas.chosen = this.canvas.chosen && key(this.canvas.chosen) === key(pair) ? null : pair;
    this.showControls();
    this.canvas.redraw();
  }

  down(pairs, isDown) {
    const rest = this.scene.weather.down.filter((one) => !pairs.some((pair) => key(pair) === key(one)));
    this.weather({ down: isDown ? [...rest, ...pairs] : rest });
    this.did("links");
  }

  cutOff(number) { this.down(this.scene.links.filter((pair) => pair.includes(number)), true); }

  // The seed chooses two halves; links between them are down until the button is pressed again.
  partition() {
    if (this.scene.weather.down.length) { this.down(this.scene.weather.down, false); return; }
    let state = this.scene.weather.seed + 1;
    const chance = () => { state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0; return state; };
    const order = this.scene.laces.map((_, number) => [chance(), number]).sort(([one], [other]) => one - other).map(([, number]) => number);
    const half = new Set(order.slice(0, Math.floor(order.length / 2)));
    this.down(this.scene.links.filter(([one, other]) => half.has(one) !== half.has(other)), true);
  }

  unlinked(pair) {
    this.scene.links = this.scene.links.filter((one) => key(one) !== key(pair));
    this.scene.weather.down = this.scene.weather.down.filter((one) => key(one) !== key(pair));
    this.canvas.chosen = null;
    this.anew("links");
  }

  addLace() {
    const { laces, links } = this.scene;
    const taken = new Set(laces.map((lace) => lace.name));
    const name = this.begin.people.map((one) => one.name).find((one) => !taken.has(one)) ?? `Lace ${laces.length + 1}`;
    const { select, expose, expose_rules } = laces.at(-1);
    laces.push({ name, records: [], select, expose, expose_rules, hostile: "" });
    links.push([laces.length - 2, laces.length - 1]);
    this.anew("links");
  }

  dropped(number) {
    const scene = this.scene;
    const [gone] = scene.laces.splice(number, 1);
    const moved = (pairs) => pairs.filter((pair) => !pair.includes(number)).map((pair) => pair.map((end) => (end > number ? end - 1 : end)));
    scene.links = moved(scene.links);
    scene.weather.down = moved(scene.weather.down);
    scene.expect = scene.expect.filter((one) => one.lace !== gone.name);
    this.canvas.chosen = null;
    this.anew("links");
  }

  // --- Python ---------------------------------------------------------------------------------------------------

  loading({ done, words }) {
    byId("loading").value = done;
    byId("status").textContent = `${words} … recordings until then`;
    this.come = done;
    this.showButton();
  }

  ready({ seconds, version }) {
    byId("loading").hidden = true;
    const status = byId("status");
    status.textContent = `Python ${version} is ready, after ${seconds.toFixed(1)} s`;
    status.classList.add("ready");
    this.showButton();
    this.keepOffline();
  }

  failed(why) {
    byId("loading").hidden = true;
    const status = byId("status");
    status.textContent = `Python could not be loaded: ${String(why).trim().split("\n").at(-1).slice(0, 120)}`;
    console.warn(why);
    status.classList.add("failed");
  }

  // The folder stays with the browser, once Python does not need the line for itself.
  async keepOffline() {
    try {
      if (navigator.onLine) await navigator.serviceWorker.register("sw.js");
      await navigator.serviceWorker.ready;
      byId("status").append(" · works offline");
      byId("status").classList.add("kept");
    } catch {
      // a browser that keeps nothing, or a page that is not served securely: it works as long as there is a line
    }
  }

  // An answer that was recorded, else Python's.
  async question(kind, question, isNewest = true) {
    const told = this.python?.isReady ? undefined : (await this.recorded)?.(kind, question);
    if (told) return told;
    await this.pythonIsThere;
    return this.python.ask(kind, question, isNewest);
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
      const answer = await this.question(kind, { scene: this.scene });
      if (answer === null || version !== this.version) return;  // somebody typed on: a newer question is on its way
      if (this.isAnswered) this.trouble("");  // what is wrong with a link stays until something is changed
      this.answered(answer, kind === "play");
      await this.remember();
    } catch (error) {
      this.trouble(error.message, true);
    } finally {
      this.busy(false);
    }
  }

  busy(isBusy) {
    this.isBusy = isBusy;
    document.body.classList.toggle("busy", isBusy);
    this.showButton();
  }

  showButton() {
    const button = byId("exchange");
    const isWaiting = this.isBusy && !this.python?.isReady;
    button.disabled = Boolean(this.isBusy) || !this.canPlay;
    button.textContent = isWaiting ? `Waiting for Python, ${this.come ?? 0} %` : this.scene?.runs.length ? "Exchange again" : "Exchange";
  }

  answered(answer, isPlayed = false) {
    this.show(answer.scene);
    this.canPlay = Boolean(answer.stage);
    this.views.forEach((view, number) => view.findings(answer.findings[number]));
    this.busy(false);
    if (!answer.stage) {
      byId("ended").replaceChildren(badge("Errors", "bad"), " ", "Mend the rules to exchange.");
      return;
    }
    const { laces, runs } = answer.stage;
    this.views.forEach((view, number) => view.holds(laces, answer.counts[number], runs.length - 1));
    this.replay.load(this.scene, answer.stage, isPlayed);
    this.showVerdict(answer.stage);
    this.showTalk(runs);
    byId("anew").hidden = !runs.length;
    if (!isPlayed) return;
    this.did("play");
    if (WEATHER.some((name) => runs.at(-1).weather[name])) this.did("trouble");
  }

  // --- controls -------------------------------------------------------------------------------------------------

  setUpScenes() {
    const choices = this.begin.presets.map((preset, number) => make("option", { value: number }, preset.title));
    byId("preset").replaceChildren(...choices, make("option", { value: -1, disabled: true, hidden: true }, "from a link"));
    byId("preset").addEventListener("change", (event) => {
      const number = Number(event.target.value);
      this.trouble("");
      this.canvas.chosen = null;
      history.replaceState(null, "", location.pathname);
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

  setUpControls() {
    for (const name of WEATHER) byId(name).addEventListener("click", () => this.weather({ [name]: !this.scene.weather[name] }));
    byId("seed").addEventListener("change", (event) => this.weather({ seed: Math.min(MOST_SEED, Math.max(0, Math.trunc(Number(event.target.value)) || 0)) }));
    byId("reseed").addEventListener("click", () => this.weather({ seed: (this.scene.weather.seed * 7919 + 12_345) % (MOST_SEED + 1) }));
    byId("anew").addEventListener("click", () => this.anew());
    byId("exchange").addEventListener("click", () => this.exchange());
    byId("partition").addEventListener("click", () => this.partition());
    byId("add-lace").addEventListener("click", () => this.addLace());
    byId("link-down").addEventListener("click", () => this.down([this.canvas.chosen], !this.isDown(this.canvas.chosen)));
    byId("link-remove").addEventListener("click", () => this.unlinked(this.canvas.chosen));
  }

  exchange() {
    this.busy(true);
    clearTimeout(this.timer);
    return this.ask("play");
  }

  // What happens in the next exchange; nothing that was played changes by it.
  weather(change) {
    Object.assign(this.scene.weather, change);
    this.showControls();
    this.canvas.redraw();
    this.remember();
  }

  did(what) {
    this.done.add(what);
    this.showGuide();
  }

  showGuide() {
    const steps = this.preset < 0 ? [] : this.begin.presets[this.preset].guide;
    const next = steps.findIndex((step) => !this.done.has(step.when));
    byId("guide").hidden = !steps.length;
    byId("guide").replaceChildren(...steps.map((step, number) => make("li", { class: this.done.has(step.when) ? "is-done" : number === next ? "is-next" : "" },
      step.words, this.done.has(step.when) ? make("span", { class: "visually-hidden" }, " (done)") : null)));
  }

  // --- what came of it ------------------------------------------------------------------------------------------

  showVerdict({ runs, verdict }) {
    if (!verdict) { byId("ended").replaceChildren(); return; }
    const last = runs.at(-1);
    const came = `Exchange ${runs.length}: ${last.received} ${last.received === 1 ? "record" : "records"} arrived in ${last.seconds.toFixed(2)} s.`;
    byId("ended").replaceChildren(badge(verdict.title, verdict.kind), " ", make("span", {}, verdict.words), " ", make("span", { class: "note" }, came));
  }

  showTalk(runs) {
    byId("talk").hidden = !runs.length;
    if (!runs.length) { byId("talk-note").textContent = ""; return; }
    const { crossings } = runs.at(-1);
    const sum = crossings.reduce((all, one) => all + one.bytes[0] + one.bytes[1], 0);
    byId("talk-note").textContent = `Exchange ${runs.length}: ${bytes(sum)} over ${crossings.length} ${crossings.length === 1 ? "link" : "links"}`;
    const parts = crossings.map((one) => {
      const about = `${one.names.join(" – ")}: ${bytes(one.bytes[0])} by ${one.names[0]}, ${bytes(one.bytes[1])} by ${one.names[1]}, ${one.seconds.toFixed(2)} s`;
      const inside = make("div", { class: "inside" }, one.wire.map((words) => make("p", { class: "note" }, words)));
      const part = make("details", { class: "fold" }, make("summary", {}, about), inside);
      part.addEventListener("toggle", () => { if (part.open && !inside.querySelector("table")) inside.append(this.table(one)); });
      return part;
    });
    byId("items").replaceChildren(...parts);
  }

  table({ items, left_out: leftOut, names }) {
    const columns = ["At", "Who", "Item", "What it says", "Size"];
    const head = make("thead", {}, make("tr", {}, columns.map((name) => make("th", { scope: "col", class: name === "Size" ? "right" : "" }, name))));
    const body = make("tbody", {}, items.map((item) => {
      const cells = [`${item.seconds.toFixed(3)} s`, make("span", { class: `who-${names.indexOf(item.who)}` }, item.who), item.kind, this.said(item), bytes(item.size)];
      return make("tr", {}, cells.map((cell, number) => make("td", { "data-column": columns[number], class: number === 4 ? "right" : "" }, cell)));
    }));
    const more = leftOut ? make("p", { class: "note" }, `… and ${leftOut} more`) : null;
    return make("div", { class: "table" }, make("table", { class: "talk" }, make("caption", {}, "What was said"), head, body), more);
  }

  said(item) {
    const name = item.kind === "record" ? `${item.name || "a record"} (${short(item.text)})` : item.text;
    const explained = item.explained && item.explained !== item.text ? make("p", { class: "note" }, item.explained) : null;
    if (!item.raw.trim()) return make("div", {}, name, explained);
    return make("div", {}, make("details", {}, make("summary", {}, name), make("pre", { tabindex: "0", "aria-label": "The bytes" }, item.raw)), explained);
  }

  // --- why ------------------------------------------------------------------------------------------------------

  async why(record, sender, receiver) {
    const [from, to] = [sender, receiver].map((number) => this.scene.laces[number].name);
    const walked = await this.question("why", { scene: this.scene, record: record.hash, from, to }, false);
    this.did("why");
    return walked;
  }

  // Carries out a piece of advice.
  async follow(advice) {
    if (advice.do === "play") { await this.exchange(); this.did("advice"); return; }
    const lace = this.scene.laces[advice.lace];
    if (advice.do === "expose") this.changed(advice.lace, { expose: advice.expose }, "advice");
    if (advice.do === "add") this.changed(advice.lace, { [advice.field]: `${lace[advice.field].trimEnd()}\n${advice.text}` }, "advice");
    if (advice.do === "edit") {
      const view = this.views[advice.lace];
      view.root.querySelector(".rules-fold").open = true;
      view[advice.field === "select" ? "select" : "exposeRules"].textarea.focus();
      return;
    }
    byId("ended").replaceChildren(make("span", { class: "note" }, `${lace.name} changed, so the laces start over: exchange again.`));
    byId("stage").scrollIntoView({ block: "start" });
    byId("exchange").focus({ preventScroll: true });
  }

  // --- as a test ------------------------------------------------------------------------------------------------

  setUpTest() {
    byId("simulate").addEventListener("click", () => this.simulate());
    byId("save").addEventListener("click", () => this.save());
    byId("expect").addEventListener("click", () => { this.scene.expect = this.end; this.expecting(); });
    byId("forget").addEventListener("click", () => { this.scene.expect = []; this.expecting(); });
  }

  async expecting() {
    this.showExpected();
    await this.remember();
  }

  showExpected() {
    const { expect } = this.scene ?? { expect: [] };
    byId("forget").hidden = !expect.length;
    byId("expected").textContent = expect.length
      ? `It expects that in the end ${expect.slice(0, 4).map((one) => `${one.lace} ${one.has ? "has" : "does not have"} ${one.record}`).join(", ")}${expect.length > 4 ? `, and ${expect.length - 4} more` : ""}.`
      : "";
  }

  tested(done) {
    byId("expect").hidden = !done;
    if (this.scene) this.showExpected();
    if (!done) { byId("tested").replaceChildren(); return; }
    const of = `${done.runs} exchanges, ${done.calm} of them calm; ${done.moved} records moved.`;
    byId("tested").replaceChildren(make("p", { class: `notice ${done.passed ? "good" : "bad"}` },
      make("strong", {}, done.passed ? "Passed. " : "Failed. "), of, done.passed ? null : make("ul", {}, done.broken.map((one) => make("li", {}, one.words)))));
    const all = [...new Set(Object.values(done.holds).flat())].sort();
    this.end = Object.entries(done.holds).flatMap(([lace, has]) => all.map((record) => ({ lace, record, has: has.includes(record) }))).slice(0, 200);
  }

  async simulate() {
    byId("simulate").disabled = true;
    byId("tested").replaceChildren(make("p", { class: "note" }, this.python?.isReady ? "Running …" : "Waiting for Python …"));
    try {
      this.tested(await this.question("simulate", { scene: this.scene }, false));
      this.did("test");
    } catch (error) {
      byId("tested").replaceChildren(make("p", { class: "notice bad" }, error.message));
    } finally {
      byId("simulate").disabled = false;
    }
  }

  save() {
    const data = new Blob([`${JSON.stringify(this.scene, null, 1)}\n`], { type: "application/json" });
    const link = make("a", { href: URL.createObjectURL(data), download: "scene.json" });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }
}

try {
  new Page(await (await fetch("first.json")).json());
} catch (error) {
  byId("status").textContent = `The page could not begin: ${error.message}`;
}
