// Rules in a page of the documentation: a block gets Run and Why?, answered by Lace in this tab.
//
//   <script type="module">
//     import { attach } from "/playground/docs.mjs";
//     for (const block of document.querySelectorAll("pre[data-lace-rules]")) attach(block);
//   </script>
//
// Python is loaded when a button is pressed for the first time, once for all blocks of a page. `run` and `why` answer
// without any element. What is shown has the classes lace-run, lace-run-table, lace-run-why and lace-run-note.
import { Python } from "./asking.mjs";
import { make } from "./making.mjs";

let python;
const watchers = new Set();

function engine() {
  python ??= new Python({ onProgress: (progress) => watchers.forEach((watch) => watch(progress)), onFailed: () => {} });
  return python;
}

// What a block of rules derives: {tables: [{predicate, columns, rows, count}], doubts: [{line, column, message, advice}]}.
// `facts` are fact lines to ask over; without them it is Ada's lace of recipes, to which Ben ("ben") offers his.
export const run = (rules, { facts = null } = {}) => engine().ask("run", { rules, facts }, false);

// Why a fact such as SelectHave('//club//recipes//soup') holds, or why it does not: {holds, text}.
export const why = (rules, goal, { facts = null } = {}) => engine().ask("why_fact", { rules, goal, facts }, false);

// Calls `watch({done, of, words})` while Python is loaded, and returns what ends that.
export function onProgress(watch) {
  watchers.add(watch);
  return () => watchers.delete(watch);
}

const goalOf = (table, row) => `${table.predicate}(${row.map((value) => `'${value}'`).join(",")})`;

// Puts the buttons under a block; its text is read at each press, so it may be edited (contenteditable, textarea).
export function attach(block, { facts = block.dataset.laceFacts ?? null, rules = () => block.value ?? block.textContent } = {}) {
  const answers = make("div", { class: "lace-run-answers", "aria-live": "polite" });
  const goal = make("input", { type: "text", class: "lace-run-goal", "aria-label": "A fact to explain", placeholder: "SelectHave('//club//recipes//soup')", spellcheck: "false", autocomplete: "off" });
  const told = (error) => answers.replaceChildren(make("pre", { class: "lace-run-note bad", tabindex: "0", "aria-label": "What is wrong" }, error.message));

  async function working(answering) {
    const stop = onProgress(({ done, of, words }) => answers.replaceChildren(
      make("p", { class: "lace-run-note" }, words, " ", make("progress", { max: of, value: done, "aria-label": words }))));
    try {
      answers.replaceChildren(make("p", { class: "lace-run-note" }, "Working …"));
      await answering();
    } catch (error) {
      told(error);
    } finally {
      stop();
    }
  }

  const explain = (text) => working(async () => {
    goal.value = text;
    const explained = await why(rules(), text, { facts });
    answers.replaceChildren(make("pre", { class: "lace-run-why", tabindex: "0", "aria-label": explained.holds ? "Why it holds" : "Why it does not hold" }, explained.text));
  });

  const show = () => working(async () => {
    const { tables, doubts } = await run(rules(), { facts });
    answers.replaceChildren(
      ...doubts.map((doubt) => make("p", { class: "lace-run-note doubt" }, `Line ${doubt.line}: ${doubt.message}${doubt.advice ? ` · ${doubt.advice}` : ""}`)),
      ...tables.map((table) => tableOf(table, explain)),
      ...(tables.length ? [] : [make("p", { class: "lace-run-note" }, "There is no rule in this block.")]));
  });

  const form = make("form", { class: "lace-run", onsubmit: (event) => { event.preventDefault(); if (goal.value.trim()) explain(goal.value.trim()); } },
    make("button", { type: "button", class: "lace-run-button", onclick: show }, "Run"), " ", goal, " ", make("button", { class: "lace-run-button" }, "Why?"));
  const frame = make("div", { class: "lace-run-frame" }, form, answers);
  block.after(frame);
  return frame;
}

function tableOf(table, explain) {
  if (!table.count) return make("p", { class: "lace-run-note" }, make("code", {}, table.predicate), ": no rows.");
  const head = make("tr", {}, table.columns.map((name) => make("th", { scope: "col" }, name)), make("th", { scope: "col" }, ""));
  const rows = table.rows.map((row) => make("tr", {}, row.map((value) => make("td", {}, value)),
    make("td", {}, make("button", { type: "button", class: "lace-run-button", "aria-label": `Why ${goalOf(table, row)}?`, onclick: () => explain(goalOf(table, row)) }, "Why?"))));
  const more = table.count - table.rows.length;
  return make("table", { class: "lace-run-table" }, make("caption", {}, `${table.predicate}: ${table.count} ${table.count === 1 ? "row" : "rows"}${more ? `, ${more} not shown` : ""}`), make("thead", {}, head), make("tbody", {}, rows));
}
