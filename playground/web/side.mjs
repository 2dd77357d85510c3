// One lace on the page: its records, what is missing, its rules with their errors, what it shows.
/* global Editor */
import { badge, byId, make, short } from "./making.mjs";

const EXPOSE = [
  ["selected", "what the rules above select"],
  ["all", "everything"],
  ["none", "nothing"],
  ["rules", "what these rules allow"],
];

const SHOWN = `# Whoever looks may see the records of //club.
AllowQueryRecord(Viewer,P) :- Have(P), Field(P,'Group',_,'club').
`;

export class SideView {
  // `page` is told of every change and every question.
  constructor(number, people, page) {
    this.number = number;
    this.person = people[number];
    this.other = people[1 - number];
    this.people = people;
    this.page = page;
    this.root = byId(`side-${number}`);
    this.build();
  }

  build() {
    const { name, verifier } = this.person;
    const copy = make("button", { type: "button", class: "copy", hidden: true, "data-copy": verifier, "aria-label": `Copy the verifier of ${name}` }, "Copy");
    this.figures = make("p", { class: "note" });
    this.records = make("ul", { class: "records", "aria-label": `Records of ${name}` });
    this.absent = make("p", { class: "absent" });
    this.select = this.editor("select", `Rules of ${name}`, `What ${name} offers and asks for: SelectHave and SelectAdvertised.`);
    this.exposeRules = this.editor("expose_rules", `What ${name} shows`, "AllowQueryRecord(Viewer,P) says who may look at what.");
    this.root.replaceChildren(
      make("div", { class: "section-head" }, make("h2", { id: `name-${this.number}` }, name), make("code", { title: `${name}'s verifier: ${verifier}` }, verifier), copy),
      this.figures, this.records, this.absent, this.adding(), this.select.root, this.choices(), this.exposeRules.root,
    );
  }

  editor(field, title, note) {
    const id = `${field}-${this.number}`;
    const textarea = make("textarea", { id, rows: 6, spellcheck: "false", autocapitalize: "off", autocomplete: "off", "aria-describedby": `${id}-caret` });
    const under = make("pre", { class: "editor-under", "aria-hidden": "true" });
    const found = make("ul", { class: "found" });
    const root = make("div", { class: "rules" },
      make("h3", {}, make("label", { for: id }, title)), make("p", { class: "note" }, note),
      make("div", { class: "editor" }, under, textarea),
      make("p", { class: "caret-note visually-hidden", id: `${id}-caret`, "aria-live": "polite" }), found);
    textarea.addEventListener("input", () => this.page.changed(this.number, { [field]: textarea.value }));
    return { root, textarea, found, marks: null };
  }

  choices() {
    this.radios = EXPOSE.map(([value, text]) => {
      const radio = make("input", { type: "radio", name: `expose-${this.number}`, value, onchange: () => this.choose(value) });
      return [radio, make("label", {}, radio, text)];
    });
    return make("fieldset", { class: "choices" }, make("legend", {}, `${this.other.name}'s rules may look at`), this.radios.map(([, label]) => label));
  }

  choose(expose) {
    const isEmpty = expose === "rules" && !this.exposeRules.textarea.value.trim();
    this.page.changed(this.number, isEmpty ? { expose, expose_rules: SHOWN } : { expose });
  }

  adding() {
    const field = (name, label, attributes = {}) => make("label", { class: attributes.class }, label, make("input", { name, required: true, maxlength: 200, autocomplete: "off", ...attributes, class: null }));
    const signers = ["", ...this.people.map((one) => one.name)].map((name) => make("option", { value: name, selected: name === this.person.name }, name || "nobody"));
    const form = make("form", {
      onsubmit: (event) => {
        event.preventDefault();
        const given = Object.fromEntries(new FormData(form));
        this.page.added(this.number, given);
        form.elements.name.value = form.elements.text.value = "";
        form.elements.name.focus();
      },
    },
    field("group", "Group", { value: "club" }), field("app", "App", { value: "recipes" }), field("name", "Name", { placeholder: "pie" }),
    make("label", {}, "Signed by", make("select", { name: "signer" }, signers)),
    field("text", "Text", { maxlength: 4000, class: "wide", placeholder: "Apples, and then more apples." }),
    make("button", {}, "Add"));
    return make("details", { class: "adding" }, make("summary", {}, "Add a record"), form);
  }

  // The scene, as it was written.
  show(side) {
    for (const [editor, text] of [[this.select, side.select], [this.exposeRules, side.expose_rules]]) {
      if (editor.textarea.value !== text) editor.textarea.value = text;
      if (!editor.marks) editor.marks = new Editor(editor.textarea);
      editor.marks.draw();
    }
    for (const [radio] of this.radios) radio.checked = radio.value === side.expose;
    this.exposeRules.root.hidden = side.expose !== "rules";
  }

  // What Python found wrong with it.
  findings(found) {
    for (const [editor, errors] of [[this.select, found.select], [this.exposeRules, found.expose_rules]]) {
      editor.marks.show(errors);
      editor.found.replaceChildren(...errors.map((one) => make("li", { class: one.doubt ? "doubt" : "" }, `${one.line}:${one.column} ${one.message}${one.advice ? ` · ${one.advice}` : ""}`)));
    }
  }

  // Both laces as they are now.
  lace(records, others, counts, notes) {
    const plural = (count) => `${count} ${count === 1 ? "record" : "records"}`;
    this.figures.textContent = `${plural(counts.records)}, ${counts.selected.length} selected by ${this.person.name}'s rules, ${counts.shown.length} shown to ${this.other.name}'s rules`;
    this.records.replaceChildren(...records.map((record) => this.record(record, notes, counts)));
    this.records.hidden = !records.length;
    const here = new Set(records.map((record) => record.hash));
    const missing = others.filter((record) => !here.has(record.hash));
    this.absent.replaceChildren(...(missing.length ? [`Not here, but with ${this.other.name}: `] : []), ...missing.flatMap((record) => [
      make("span", { class: "name" }, shown(record.name)),
      make("button", { type: "button", class: "small", onclick: () => this.page.why(record, 1 - this.number), "aria-label": `Why is ${record.name} not here?` }, "Why not?"), " ",
    ]));
  }

  record(record, notes, counts) {
    const place = notes.findIndex((note) => note.group === record.group && note.app === record.app && note.name === record.name && note.text === record.text && note.signer === record.signer);
    const came = record.came !== null;
    const badges = [
      record.signer ? badge(`signed by ${record.signer}`) : badge("unsigned"),
      came ? badge(`came in exchange ${record.came + 1}`, "good") : null,
      counts.shown.includes(record.hash) ? null : badge("hidden", "warn"),
    ];
    const why = make("button", { type: "button", class: "small", onclick: () => this.page.why(record, this.number), "aria-label": `Why does ${record.name} go to ${this.other.name}, or not?` }, "Why?");
    const remove = came || place < 0 ? null : make("button", { type: "button", class: "small danger", onclick: () => this.page.removed(this.number, place), "aria-label": `Remove ${record.name}` }, "Remove");
    return make("li", { class: came ? "fresh" : "", title: record.hash },
      make("div", {}, make("span", { class: "name" }, shown(record.name)), " ", make("span", { class: "place" }, `//${record.group}//${record.app}`), " ", badges.flatMap((one) => (one ? [one, " "] : []))),
      make("p", { class: "text" }, record.text),
      make("div", { class: "buttons" }, why, remove));
  }
}

function shown(name) {
  return /^V\..{43}\.H3$/u.test(name) ? short(name) : name;
}
