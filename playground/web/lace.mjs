// One lace on the page: its records, what it lacks, its rules with their errors, what it shows, how it behaves.
/* global Editor */
import { badge, make, short } from "./making.mjs";

const EXPOSE = [
  ["selected", "what the rules above select"],
  ["all", "everything"],
  ["none", "nothing"],
  ["rules", "what these rules allow"],
];
const BEHAVES = [
  ["", "is honest"],
  ["tampers", "changes a bit of every record sent"],
  ["greedy", "asks for everything, shows nothing"],
  ["silent", "says hello, and then nothing"],
];
const SHOWN = `# Anybody may see the records of //club.
AllowQueryRecord(Viewer,P) :- Have(P), Field(P,'Group',_,'club').
`;

export class LaceView {
  // `page` is told of every change and every question.
  constructor(number, scene, people, page) {
    this.number = number;
    this.scene = scene;
    this.name = scene.laces[number].name;
    this.people = people;
    this.page = page;
    this.isPair = scene.laces.length === 2;
    this.asked = new Map();  // what was asked about a record, and the part of its card that answers
    this.build();
  }

  get lace() { return this.scene.laces[this.number]; }

  get neighbours() { return this.scene.links.filter((pair) => pair.includes(this.number)).map((pair) => pair[0] + pair[1] - this.number).sort(); }

  nameOf(number) { return this.scene.laces[number].name; }

  build() {
    const { name, number } = this;
    this.verifier = make("code", { class: "verifier" });
    this.figures = make("p", { class: "note" });
    this.records = make("ul", { class: "records", "aria-label": `Records of ${name}` });
    this.absent = make("ul", { class: "records absent", "aria-label": `What ${name} does not have` });
    this.select = this.editor("select", `Rules of ${name}`, `What ${name} offers (SelectHave) and asks for (SelectAdvertised).`);
    this.exposeRules = this.editor("expose_rules", `What ${name} shows`, "AllowQueryRecord(Viewer,P) says who may look at what.");
    this.badges = make("span", {});
    const rules = make("details", { class: "rules-fold", open: this.isPair }, make("summary", {}, "Rules, and what they show"), this.select.root, this.choices(), this.exposeRules.root);
    this.root = make("section", { class: `lace hue-${number}`, id: `lace-${number}`, "aria-labelledby": `name-${number}`, tabindex: "-1" },
      make("div", { class: "lace-head" }, make("h2", { id: `name-${number}` }, name), this.badges, this.verifier, this.more()),
      this.figures, this.records, this.absent, this.adding(), rules);
  }

  // What a lace is to the others: how it behaves, its links, and whether it is here at all.
  more() {
    const { name, number } = this;
    const behaves = make("select", { id: `behaves-${number}`, onchange: () => this.page.changed(number, { hostile: behaves.value }) },
      BEHAVES.map(([value, text]) => make("option", { value, selected: value === this.lace.hostile }, text)));
    const unlinked = this.scene.laces.map((_, other) => other).filter((other) => other !== number && !this.neighbours.includes(other));
    const link = make("select", { id: `link-${number}`, onchange: () => this.page.linked([number, Number(link.value)]) },
      make("option", { value: "", selected: true, disabled: true }, "choose"), unlinked.map((other) => make("option", { value: other }, this.nameOf(other))));
    return make("details", { class: "more-of" }, make("summary", { "aria-label": `More about ${name}` }, "⋯"), make("div", { class: "menu" },
      make("label", { for: `behaves-${number}` }, `${name} `), behaves,
      unlinked.length ? make("label", { for: `link-${number}` }, "Link to ", link) : null,
      this.isPair ? null : make("button", { type: "button", class: "small", onclick: () => this.page.cutOff(number) }, "Cut off in the next exchange"),
      this.scene.laces.length > 2 ? make("button", { type: "button", class: "small danger", onclick: () => this.page.dropped(number) }, `Remove ${name}`) : null));
  }

  editor(field, title, note) {
    const id = `${field}-${this.number}`;
    const textarea = make("textarea", { id, rows: 5, spellcheck: "false", autocapitalize: "off", autocomplete: "off", "aria-describedby": `${id}-caret` });
    const under = make("pre", { class: "editor-under", "aria-hidden": "true" });
    const found = make("ul", { class: "found" });
    const root = make("div", { class: "rules" },
      make("h3", {}, make("label", { for: id }, title)), make("p", { class: "note" }, note),
      make("div", { class: "editor" }, under, textarea),
      make("p", { class: "caret-note visually-hidden", id: `${id}-caret`, "aria-live": "polite" }), found);
    textarea.addEventListener("input", () => this.page.changed(this.number, { [field]: textarea.value }, "rules"));
    return { root, textarea, found, marks: null };
  }

  choices() {
    const others = this.isPair ? `${this.nameOf(1 - this.number)}'s rules` : "the rules of others";
    this.radios = EXPOSE.map(([value, text]) => {
      const radio = make("input", { type: "radio", name: `expose-${this.number}`, value, onchange: () => this.choose(value) });
      return [radio, make("label", {}, radio, text)];
    });
    return make("fieldset", { class: "choices" }, make("legend", {}, `${this.name} shows to ${others}`), this.radios.map(([, label]) => label));
  }

  choose(expose) {
    const isEmpty = expose === "rules" && !this.exposeRules.textarea.value.trim();
    this.page.changed(this.number, isEmpty ? { expose, expose_rules: SHOWN } : { expose }, "rules");
  }

  adding() {
    const field = (name, label, attributes = {}) => make("label", { class: attributes.class }, label, make("input", { name, required: true, maxlength: 200, autocomplete: "off", ...attributes, class: null }));
    const known = [...new Set([...this.scene.laces.map((lace) => lace.name), ...this.people.map((one) => one.name)])];
    const signers = ["", ...known].map((name) => make("option", { value: name, selected: name === this.name }, name || "nobody"));
    const usual = this.lace.records[0] ?? this.scene.laces.flatMap((lace) => lace.records)[0] ?? { group: "club", app: "notes" };
    const form = make("form", {
      onsubmit: (event) => {
        event.preventDefault();
        this.page.added(this.number, Object.fromEntries(new FormData(form)));
        form.elements.name.value = form.elements.text.value = "";
        form.elements.name.focus();
      },
    },
    field("group", "Group", { value: usual.group }), field("app", "App", { value: usual.app }), field("name", "Name", { placeholder: "pie" }),
    make("label", {}, "Signed by", make("select", { name: "signer" }, signers)),
    field("text", "Text", { maxlength: 4000, class: "wide", placeholder: "Apples, and then more apples." }),
    make("button", {}, "Add"));
    return make("details", { class: "adding" }, make("summary", {}, "Add a record"), form);
  }

  // The scene, as it was written.
  show() {
    for (const [editor, text] of [[this.select, this.lace.select], [this.exposeRules, this.lace.expose_rules]]) {
      if (editor.textarea.value !== text) editor.textarea.value = text;
      if (!editor.marks) editor.marks = new Editor(editor.textarea);
      editor.marks.draw();
    }
    for (const [radio] of this.radios) radio.checked = radio.value === this.lace.expose;
    this.exposeRules.root.hidden = this.lace.expose !== "rules";
    this.badges.replaceChildren(...(this.lace.hostile ? [badge(this.lace.hostile, "bad")] : []));
  }

  // What Python found wrong with the rules.
  findings(found) {
    for (const [editor, errors] of [[this.select, found.select], [this.exposeRules, found.expose_rules]]) {
      editor.marks.show(errors);
      editor.found.replaceChildren(...errors.map((one) => make("li", { class: one.doubt ? "doubt" : "" }, `${one.line}:${one.column} ${one.message}${one.advice ? ` · ${one.advice}` : ""}`)));
    }
    if ([...found.select, ...found.expose_rules].some((one) => !one.doubt)) this.root.querySelector(".rules-fold").open = true;
  }

  // All laces as they are now.
  holds(laces, counts, last) {
    const { records, verifier } = laces[this.number];
    const others = this.isPair ? `${this.nameOf(1 - this.number)}'s rules` : "others";
    this.verifier.textContent = short(verifier);
    this.verifier.title = `${this.name}'s key (verifier): ${verifier}`;
    this.figures.textContent = `${records.length} ${records.length === 1 ? "record" : "records"} · ${counts.selected.length} selected by the rules · ${counts.shown.length} shown to ${others}`;
    this.asked.clear();
    this.records.replaceChildren(...records.map((record) => this.record(record, counts, last)));
    this.records.hidden = !records.length;
    const here = new Set(records.map((record) => record.hash));
    const missing = new Map();
    laces.forEach((lace, number) => lace.records.forEach((record) => {
      if (here.has(record.hash)) return;
      missing.set(record.hash, { record, holders: [...(missing.get(record.hash)?.holders ?? []), number] });
    }));
    this.absent.replaceChildren(...Array.from(missing.values(), ({ record, holders }) => this.lacking(record, holders)));
    this.absent.hidden = !missing.size;
  }

  card(record, kind, badges, buttons) {
    const answer = make("div", { class: "why", tabindex: "-1", hidden: true });
    this.asked.set(record.hash, answer);
    return make("li", { class: kind, title: record.hash },
      make("div", { class: "head" }, make("span", { class: "name" }, record.shown), " ", make("span", { class: "place" }, `//${record.group}//${record.app}`), " ", badges.flatMap((one) => (one ? [one, " "] : []))),
      make("p", { class: "text" }, record.text),
      make("div", { class: "buttons" }, buttons), answer);
  }

  record(record, counts, last) {
    const place = this.lace.records.findIndex((note) => ["group", "app", "name", "text", "signer"].every((part) => note[part] === record[part]));
    const came = record.came !== null;
    const badges = [
      record.signer ? badge(`signed by ${record.signer.length > 20 ? short(record.signer) : record.signer}`) : badge("unsigned"),
      came ? badge(`from ${record.of}, exchange ${record.came + 1}`, "good") : null,
      counts.shown.includes(record.hash) ? null : badge("not shown", "warn"),
    ];
    const why = make("button", { type: "button", class: "small", onclick: () => this.ask(record, this.neighbours.map((other) => [this.number, other])), "aria-label": this.isPair ? `Why does ${record.shown} go to ${this.nameOf(1 - this.number)}, or not?` : `Why does ${record.shown} go to the others, or not?` }, "Why?");
    const remove = came || place < 0 ? null : make("button", { type: "button", class: "small danger", onclick: () => this.page.removed(this.number, place), "aria-label": `Remove ${record.shown} from ${this.name}` }, "Remove");
    return this.card(record, came && record.came === last ? "fresh" : "", badges, [this.neighbours.length ? why : null, remove].filter(Boolean));
  }

  lacking(record, holders) {
    const near = holders.filter((number) => this.neighbours.includes(number));
    const giver = near.find((number) => !this.scene.laces[number].hostile) ?? near[0];
    const names = holders.map((number) => this.nameOf(number)).join(", ");
    const button = giver === undefined
      ? make("span", { class: "note" }, this.neighbours.length ? "not yet with a neighbour" : "no link leads here")
      : make("button", { type: "button", class: "small", onclick: () => this.ask(record, [[giver, this.number]]), "aria-label": `Why is ${record.shown} not with ${this.name}?` }, "Why not?");
    return this.card(record, "missing", [badge(`not here, with ${names}`)], [button]);
  }

  // --- why --------------------------------------------------------------------------------------------------------

  async ask(record, ways) {
    const answer = this.asked.get(record.hash);
    if (!answer.hidden && answer.dataset.done) { answer.hidden = true; return; }
    answer.hidden = false;
    answer.replaceChildren(make("p", { class: "note" }, "Asking …"));
    try {
      const walks = [];
      for (const [sender, receiver] of ways) walks.push(await this.page.why(record, sender, receiver));
      answer.replaceChildren(...walks.map((walked) => this.walk(walked)));
      answer.dataset.done = "yes";
      answer.focus({ preventScroll: true });
    } catch (error) {
      answer.replaceChildren(make("p", { class: "notice bad" }, error.message));
    }
  }

  walk({ verdict, stops, gates, advice, to }) {
    const steps = advice.map((one) => make("li", {}, make("button", { type: "button", class: "small", onclick: () => this.page.follow(one) }, one.words), one.text ? make("pre", { tabindex: "0", "aria-label": "The rules to add" }, one.text.trim()) : null));
    const open = gates.filter((gate) => gate.open === true).length;
    return make("div", { class: "walk" },
      make("p", { class: `verdict ${stops ? "stops" : "goes"}` }, this.isPair ? null : make("strong", {}, `To ${to}: `), verdict),
      steps.length ? make("ul", { class: "advice", "aria-label": "What you can do about it" }, steps) : null,
      make("details", {}, make("summary", {}, `All ${gates.length} gates, ${open} open`), make("ol", {}, gates.map(gate))));
  }
}

function gate({ side, gate: name, open, said, because }) {
  const [words, kind] = open === true ? ["open", "good"] : open === false ? ["shut", "bad"] : ["unknown", "warn"];
  const head = [make("strong", {}, name), " ", badge(`${side}, ${words}`, kind)];
  return make("li", {},
    because ? make("details", { open: open === false }, make("summary", {}, head), make("pre", { tabindex: "0", "aria-label": "Why" }, because)) : make("div", {}, head),
    said && said !== "yes" && said !== "no" ? make("p", { class: "note" }, said) : null);
}
