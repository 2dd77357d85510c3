// The picture: laces with their records as dots, links between them, and what travels on these.
// Drag from lace to lace to link them; press a link to choose it. Everything here can be done in the panels too.
const SVG = document.getElementById("canvas").namespaceURI;
const DOT = 6, GAP = 16;

function draw(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

const key = ([a, b]) => `${Math.min(a, b)}-${Math.max(a, b)}`;
const between = (from, to, part) => ({ x: from.x + (to.x - from.x) * part, y: from.y + (to.y - from.y) * part });

export class Canvas {
  constructor(svg, { onLink, onChoose }) {
    this.svg = svg;
    this.onLink = onLink;
    this.onChoose = onChoose;
    this.chosen = null;
    this.looks = new Map();  // of links in the replay: "broken", "bad"
    this.links = draw("g");
    this.nodes = draw("g");
    this.air = draw("g", { "aria-hidden": "true" });
    this.pulled = draw("line", { class: "pulled", visibility: "hidden" });
    svg.append(this.links, this.pulled, this.nodes, this.air);
    new ResizeObserver(() => this.redraw()).observe(svg);
    svg.addEventListener("pointermove", (event) => this.pull(event));
    svg.addEventListener("pointerup", (event) => this.drop(event));
    svg.addEventListener("pointercancel", () => this.let_go());
  }

  // `sets` are lists of {hash, name, hue} by lace.
  show(scene, sets) {
    this.scene = scene;
    this.sets = sets;
    this.redraw();
  }

  look(looks) {
    this.looks = looks;
    this.redraw();
  }

  get width() { return Math.max(280, this.svg.clientWidth || 280); }

  measure() {
    const count = this.scene.laces.length;
    const narrow = this.width < 520;
    const height = count === 2 ? (narrow ? 170 : 300) : narrow ? (count > 4 ? 560 : 440) : 400;
    const box = { w: narrow ? 104 : count === 2 ? 170 : 138, h: narrow ? 80 : 92 };
    const middle = { x: this.width / 2, y: height / 2 };
    const reach = { x: middle.x - box.w / 2 - (count === 2 && !narrow ? 30 : 6), y: middle.y - box.h / 2 - 6 };
    const turn = count === 2 ? Math.PI : count === 4 ? -Math.PI * 0.75 : -Math.PI / 2;
    const stretch = count === 4 ? Math.SQRT2 * 0.98 : 1;
    this.places = this.scene.laces.map((_, number) => {
      const angle = turn + (2 * Math.PI * number) / count;
      return { x: middle.x + reach.x * stretch * Math.cos(angle), y: middle.y + reach.y * stretch * Math.sin(angle) };
    });
    this.box = box;
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${height}`);
    this.svg.setAttribute("height", height);
  }

  redraw() {
    if (!this.scene) return;
    this.measure();
    const focused = document.activeElement?.dataset?.link;
    this.links.replaceChildren(...this.scene.links.map((pair) => this.link(pair)));
    this.nodes.replaceChildren(...this.scene.laces.map((lace, number) => this.node(lace, number)));
    if (focused) this.links.querySelector(`[data-link="${focused}"]`)?.focus();
  }

  link(pair) {
    const [from, to] = pair.map((end) => this.places[end]);
    const [one, other] = pair.map((end) => this.scene.laces[end].name);
    const isDown = this.isDown(pair);
    const line = { x1: from.x, y1: from.y, x2: to.x, y2: to.y };
    const look = this.looks.get(key(pair)) ?? "";
    const choose = () => this.onChoose(pair);
    return draw("g", {
      class: `link ${isDown ? "down" : ""} ${look} ${this.chosen && key(this.chosen) === key(pair) ? "chosen" : ""}`,
      role: "button", tabindex: 0, "data-link": key(pair),
      "aria-label": `Link between ${one} and ${other}${isDown ? ", down in the next exchange" : ""}`,
      onclick: choose,
      onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(); } },
    }, draw("line", { class: "hit", ...line }), draw("line", { class: "wire-line", ...line }));
  }

  isDown(pair) { return this.scene.weather.down.some((one) => key(one) === key(pair)); }

  node(lace, number) {
    const { x, y } = this.places[number];
    const { w, h } = this.box;
    const set = this.sets[number] ?? [];
    const perRow = Math.floor((w - 20) / GAP);
    const rows = Math.floor((h - 28) / GAP);
    const most = perRow * rows;
    const seen = set.length > most ? set.slice(0, most - 2) : set;
    const top = y - h / 2, left = x - w / 2;
    return draw("g", { class: `node hue-${number} ${lace.hostile ? "hostile" : ""}`, "data-node": number, onpointerdown: (event) => this.take(event, number) },
      draw("rect", { class: "body", x: left, y: top, width: w, height: h, rx: 10 }),
      draw("rect", { class: "stripe", x: left + 10, y: top + 8, width: 4, height: 16, rx: 2 }),
      draw("text", { class: "name", x: left + 21, y: top + 21 }, shortened(lace.name, w < 120 ? 8 : 12)),
      lace.hostile ? draw("text", { class: "role", x: left + w - 10, y: top + 21, "text-anchor": "end" }, w < 120 ? "☠" : lace.hostile) : null,
      ...seen.map((record, place) => this.dot(record, this.spot(number, place))),
      seen.length < set.length ? draw("text", { class: "more", x: left + w - 12, y: top + 38 + (rows - 1) * GAP + 4, "text-anchor": "end" }, `+${set.length - seen.length}`) : null);
  }

  spot(number, place) {
    const { w, h } = this.box;
    const perRow = Math.floor((w - 20) / GAP);
    const { x, y } = this.places[number];
    return { x: x - w / 2 + 16 + (place % perRow) * GAP, y: y - h / 2 + 40 + Math.floor(place / perRow) * GAP };
  }

  dot(record, { x, y }) {
    return draw("circle", { class: `dot hue-${record.hue} ${record.fresh ? "fresh" : ""}`, cx: x, cy: y, r: DOT }, draw("title", {}, record.name));
  }

  // --- links drawn with the pointer -------------------------------------------------------------------------------

  at(event) {
    const frame = this.svg.getBoundingClientRect();
    return { x: ((event.clientX - frame.left) * this.width) / frame.width, y: event.clientY - frame.top };
  }

  take(event, number) {
    if (event.button) return;
    this.from = number;
    this.svg.setPointerCapture(event.pointerId);
    event.preventDefault();
  }

  pull(event) {
    if (this.from === undefined) return;
    const start = this.places[this.from], end = this.at(event);
    for (const [name, value] of Object.entries({ x1: start.x, y1: start.y, x2: end.x, y2: end.y, visibility: "visible" })) this.pulled.setAttribute(name, value);
  }

  drop(event) {
    if (this.from === undefined) return;
    const { x, y } = this.at(event);
    const to = this.places.findIndex((place) => Math.abs(place.x - x) <= this.box.w / 2 && Math.abs(place.y - y) <= this.box.h / 2);
    const from = this.from;
    this.let_go();
    if (to >= 0 && to !== from) this.onLink([from, to]);
  }

  let_go() {
    this.from = undefined;
    this.pulled.setAttribute("visibility", "hidden");
  }

  // --- what travels ---------------------------------------------------------------------------------------------

  clear() { this.air.replaceChildren(); }

  // Shows moments at the same time; `ms` 0 is at once, as a still picture.
  fly(moments, hues, ms) {
    this.clear();
    this.flight = (this.flight ?? 0) + 1;
    const lanes = new Map();
    const movers = moments.map((moment) => {
      const lane = lanes.get(key([moment.from, moment.to])) ?? 0;
      lanes.set(key([moment.from, moment.to]), lane + 1);
      return this.mover(moment, hues, lane);
    }).filter(Boolean);
    if (!ms) {
      for (const move of movers) move(0.5);
      return Promise.resolve();
    }
    for (const move of movers) move(0);
    const flight = this.flight, start = performance.now();
    return new Promise((resolve) => {
      const frame = (now) => {
        if (flight !== this.flight) { resolve(); return; }
        const part = Math.min(1, (now - start) / ms);
        for (const move of movers) move(part);
        if (part < 1) requestAnimationFrame(frame);
        else { this.clear(); resolve(); }
      };
      requestAnimationFrame(frame);
    });
  }

  mover(moment, hues, lane) {
    const from = this.places[moment.from], to = this.places[moment.to];
    if (!from || !to) return null;
    const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
    const aside = (lane ? Math.ceil(lane / 2) * 15 * (lane % 2 ? 1 : -1) : 0);
    const normal = { x: (-(to.y - from.y) / length) * aside, y: ((to.x - from.x) / length) * aside };
    const shift = (at) => ({ x: at.x + normal.x, y: at.y + normal.y });
    if (["cut", "broke"].includes(moment.kind)) {
      const at = between(from, to, 0.5);
      const spark = this.spark(at, moment.kind === "cut" ? "spark" : "spark quiet");
      this.air.append(spark);
      const ghosts = moment.kind === "cut" ? moment.records.map((record, place) => this.flying(record, hues, "lost", { x: at.x + (place - (moment.records.length - 1) / 2) * 15, y: at.y + 30 })) : [];
      return (part) => {
        spark.setAttribute("transform", `translate(${at.x} ${at.y}) scale(${0.6 + 0.6 * Math.sin(Math.PI * part)}) rotate(${40 * part})`);
        for (const ghost of ghosts) ghost.setAttribute("opacity", 1 - 0.7 * part);
      };
    }
    if (moment.kind === "done") return null;
    const isRecord = ["record", "refused"].includes(moment.kind) || (moment.kind === "flip" && moment.records.length);
    const shape = isRecord ? this.flying(moment.records[0], hues, "", from) : this.word(moment.kind === "flip");
    const isBad = moment.kind !== "record" && moment.kind !== "talk";
    let flash = null;
    return (part) => {
      const at = shift(between(from, to, 0.12 + 0.76 * part));
      shape.setAttribute("transform", `translate(${at.x} ${at.y})`);
      if (isBad && part >= 0.5) {
        shape.classList.add("red");
        flash ??= this.flash(shift(between(from, to, 0.5)));
      }
      if (moment.kind === "refused") shape.setAttribute("opacity", part > 0.85 ? (1 - part) / 0.15 : 1);
    };
  }

  flying(record, hues, kind, at) {
    const shape = draw("g", { class: `flying hue-${hues.get(record) ?? 0} ${kind}`, transform: `translate(${at.x} ${at.y})` }, draw("circle", { class: "dot", r: DOT + 2 }));
    this.air.append(shape);
    return shape;
  }

  word(isFlip) {
    const shape = draw("g", { class: isFlip ? "word flip" : "word" }, draw("rect", { x: -9, y: -6, width: 18, height: 12, rx: 4 }), draw("path", { d: "M-5 -2h10M-5 2h6" }));
    this.air.append(shape);
    return shape;
  }

  spark(at, kind) {
    const points = Array.from({ length: 16 }, (_, n) => {
      const reach = n % 2 ? 9 : 22, angle = (n * Math.PI) / 8;
      return `${(reach * Math.cos(angle)).toFixed(1)},${(reach * Math.sin(angle)).toFixed(1)}`;
    });
    return draw("polygon", { class: kind, points: points.join(" "), transform: `translate(${at.x} ${at.y})` });
  }

  flash(at) {
    const shape = draw("circle", { class: "flash", cx: at.x, cy: at.y, r: 15 });
    this.air.append(shape);
    return shape;
  }
}

function shortened(text, most) {
  const letters = Array.from(text);
  return letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : text;
}

export { key };
