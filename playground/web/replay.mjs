// The last exchange, step by step: which records each lace has by then, what travels, and the sentence for it.
import { key } from "./canvas.mjs";
import { byId, make } from "./making.mjs";

const MS = { talk: 420, record: 850, refused: 1400, cut: 1500, flip: 1400, broke: 1300, done: 300 };
const TOGETHER_S = 0.03;  // of links with different delays
const isStill = matchMedia("(prefers-reduced-motion: reduce)");

export class Replay {
  constructor(canvas) {
    this.canvas = canvas;
    this.steps = [];
    this.at = 0;
    byId("first-step").addEventListener("click", () => this.go(0));
    byId("back-step").addEventListener("click", () => this.go(this.at - 1));
    byId("next-step").addEventListener("click", () => this.on());
    byId("last-step").addEventListener("click", () => this.go(this.steps.length));
    byId("run-steps").addEventListener("click", () => (this.isRunning ? this.stop() : this.run(this.at >= this.steps.length ? 0 : this.at)));
  }

  // `stage` as Python tells it; `isNew` plays it at once.
  load(scene, stage, isNew) {
    this.stop();
    this.scene = scene;
    this.last = stage.runs.length - 1;
    this.hues = new Map();
    this.fixed = stage.laces.map((lace) => lace.records);
    this.fixed.forEach((records, number) => records.forEach((record) => { if (record.came === null && !this.hues.has(record.hash)) this.hues.set(record.hash, number); }));
    this.steps = this.last < 0 ? [] : stepsOf(stage.runs[this.last].crossings.flatMap((one) => one.moments), scene.laces.length > 2);
    this.at = this.steps.length;
    byId("telling").hidden = !this.steps.length;
    this.lines = [];
    byId("moments").replaceChildren(...this.steps.flatMap((step, number) => step.map((moment) => this.line(moment, number))));
    if (isNew && this.steps.length && !isStill.matches) this.run(0);
    else this.go(this.at);
  }

  // A scene that was just changed, before anything is known about it but what it says.
  begin(scene) {
    this.stop();
    this.steps = [];
    byId("telling").hidden = true;
    this.canvas.looks = new Map();
    this.canvas.clear();
    this.canvas.show(scene, scene.laces.map((lace, hue) => lace.records.map(({ name }) => ({ name, hue }))));
  }

  line(moment, number) {
    const button = make("button", { type: "button", class: `moment ${moment.kind}`, onclick: () => { this.go(number); this.on(); } },
      make("span", { class: "when" }, `${moment.at.toFixed(2)} s`), make("span", { class: "what" }, moment.words));
    const item = make("li", { "data-step": number }, button);
    this.lines.push([number, item]);
    return item;
  }

  // What each lace has after `count` steps.
  sets(count) {
    if (count >= this.steps.length) return this.fixed.map((records) => records.map((record) => this.shown(record)));
    const come = this.fixed.map(() => new Set());
    for (const step of this.steps.slice(0, count)) for (const moment of step) if (moment.stored) come[moment.to].add(moment.records[0]);
    return this.fixed.map((records, number) => records.filter((record) => record.came !== this.last || come[number].has(record.hash)).map((record) => this.shown(record)));
  }

  shown(record) { return { hash: record.hash, name: record.shown, hue: this.hues.get(record.hash) ?? 0, fresh: record.came === this.last && this.last >= 0 }; }

  looks(count) {
    const looks = new Map();
    for (const step of this.steps.slice(0, count)) {
      for (const moment of step) if (["cut", "broke", "refused", "flip"].includes(moment.kind)) looks.set(key([moment.from, moment.to]), moment.kind === "cut" || moment.kind === "broke" ? "broken" : looks.get(key([moment.from, moment.to])) ?? "bad");
    }
    return looks;
  }

  // Stands still after `count` steps.
  go(count) {
    this.stop();
    this.stand(count);
  }

  stand(count) {
    this.at = Math.max(0, Math.min(this.steps.length, count));
    this.canvas.clear();
    this.canvas.looks = this.looks(this.at);
    this.canvas.show(this.scene, this.sets(this.at));
    this.mark(this.at - 1);
  }

  mark(current) {
    const list = byId("moments");
    for (const [number, item] of this.lines ?? []) {
      item.classList.toggle("later", number > current);
      item.classList.toggle("now", number === current && current < this.steps.length - 1);
      if (number === current) item.setAttribute("aria-current", "step");
      else item.removeAttribute("aria-current");
    }
    const item = this.lines?.find(([number]) => number === current)?.[1];
    if (item && list.scrollHeight > list.clientHeight) list.scrollTop = item.offsetTop - list.clientHeight / 2;
    byId("run-steps").textContent = this.isRunning ? "Pause" : this.at >= this.steps.length ? "Replay" : "Play";
    byId("back-step").disabled = byId("first-step").disabled = this.at === 0;
    byId("next-step").disabled = byId("last-step").disabled = this.at >= this.steps.length;
  }

  // One step on, with what travels; where people want no motion, as a still picture of the middle of it.
  async on() {
    this.stop();
    await this.show(this.at);
  }

  async show(number) {
    const step = this.steps[number];
    if (!step) return;
    this.at = number + 1;
    this.mark(number);
    if (isStill.matches) {
      this.canvas.looks = this.looks(number + 1);
      this.canvas.show(this.scene, this.sets(number + 1));
      await this.canvas.fly(step, this.hues, 0);
      return;
    }
    await this.canvas.fly(step, this.hues, MS[step[0].kind] ?? 500);
    if (this.at === number + 1) {
      this.canvas.looks = this.looks(number + 1);
      this.canvas.show(this.scene, this.sets(number + 1));
    }
  }

  async run(from) {
    this.stop();
    const running = this.isRunning = Symbol("run");
    this.stand(from);
    for (let number = from; number < this.steps.length; number += 1) {
      await this.show(number);
      if (this.isRunning !== running) return;
    }
    this.isRunning = null;
    this.stand(this.steps.length);
  }

  stop() {
    this.isRunning = null;
    this.canvas.flight = (this.canvas.flight ?? 0) + 1;
  }
}

function stepsOf(moments, isMany) {
  const steps = [];
  for (const moment of moments.toSorted((one, other) => one.at - other.at)) {
    const last = steps.at(-1);
    const isSame = last && last[0].kind === moment.kind && moment.at - last[0].at <= (isMany ? TOGETHER_S : 0);
    if (isSame) last.push(moment);
    else steps.push([moment]);
  }
  return steps;
}
