// The documentation in a browser: search, copying, and code that scrolls can be reached by keyboard.
// Rule: a page is whole without this file, and it asks no network: the search index is a script beside it.
"use strict";

const root = document.body.dataset.root;

// Search ---------------------------------------------------------------------------------------------------------------

const COMMON = new Set("a an the to of is are in on for and or how do i my what with it".split(" "));
const MOST = 12; // pages shown
const field = document.getElementById("find");
const panel = document.getElementById("found");
let index = null;

/** The index as sections with everything a search reads in lower case; loaded when somebody first searches. */
function load() {
  index ??= new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = root + "look/index.js";
    script.onerror = failed;
    script.onload = () => {
      const { pages, entries } = window.laceSearch;
      done(entries.map(([number, anchor, heading, text]) => {
        const [address, title, section, words, weight] = pages[number];
        const low = { title: title.toLowerCase(), heading: heading.toLowerCase(), words, text: text.toLowerCase() };
        return { address, anchor, title, heading, section, weight, text, low };
      }));
    };
    document.head.append(script);
  });
  return index;
}

/** What a word begins with in all its forms: revoke, revoked, revoking; member, members. */
const stem = (word) => (word.length > 4 ? word.replace(/(?:ing|ed|es|e|s)$/, "") : word);

function terms(query) {
  const all = query.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? [];
  const telling = all.filter((word) => !COMMON.has(word));
  return (telling.length ? telling : all).map((word) => {
    const escaped = stem(word).replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    return new RegExp(`(?<![\\p{L}\\p{N}])${escaped}`, "gu");
  });
}

const times = (text, term) => Math.min(3, (text.match(term) ?? []).length);

/** Pages by how well their best section answers; a word that is missing costs most of the worth. */
function search(sections, query) {
  const wanted = terms(query);
  if (!wanted.length) return [];
  const best = new Map();
  for (const section of sections) {
    let score = 0;
    let missing = 0;
    for (const term of wanted) {
      const { title, heading, words, text } = section.low;
      const worth = 12 * times(title, term) + 7 * times(heading, term) + 6 * times(words, term) + times(text, term);
      score += Math.min(worth, 24);
      missing += worth === 0 ? 1 : 0;
    }
    score *= section.weight * 0.25 ** missing;
    if (!section.anchor) score *= 1.1;
    const known = best.get(section.address);
    if (score > 0 && (!known || score > known.score)) best.set(section.address, { section, score });
  }
  return [...best.values()].sort((one, other) => other.score - one.score).slice(0, MOST);
}

/** Some words of a section around the first find, with what was found marked. */
function snippet(section, wanted) {
  const first = wanted.map((term) => section.low.text.search(term)).filter((place) => place >= 0);
  const from = Math.max(0, Math.min(...(first.length ? first : [0])) - 50);
  const shown = (from ? "… " : "") + section.text.slice(from, from + 170);
  const line = document.createElement("span");
  line.className = "snippet";
  const any = new RegExp(wanted.map((term) => `${term.source}[\\p{L}\\p{N}]*`).join("|"), "giu");
  let at = 0;
  for (const found of shown.matchAll(any)) {
    const mark = document.createElement("mark");
    mark.textContent = found[0];
    line.append(shown.slice(at, found.index), mark);
    at = found.index + found[0].length;
  }
  line.append(shown.slice(at));
  return line;
}

async function show() {
  const query = field.value.trim();
  if (!query) return hide();
  const sections = await load();
  if (field.value.trim() !== query) return; // somebody typed on meanwhile
  const results = search(sections, query);
  const wanted = terms(query);
  document.getElementById("found-count").textContent = results.length
    ? `${results.length} ${results.length === 1 ? "page" : "pages"}`
    : `Nothing is about “${query}”. The generated pages (Python API, decisions, benchmark tables) are not searched.`;
  panel.querySelector("ol").replaceChildren(...results.map(({ section }) => {
    const link = document.createElement("a");
    link.href = root + section.address + (section.anchor ? "#" + section.anchor : "");
    const title = document.createElement("strong");
    title.textContent = section.title;
    const where = document.createElement("span");
    where.className = "where";
    where.textContent = ` ${section.heading ? "› " + section.heading : ""} · ${section.section}`;
    link.append(title, where, snippet(section, wanted));
    const item = document.createElement("li");
    item.append(link);
    return item;
  }));
  panel.hidden = false;
}

function hide() {
  panel.hidden = true;
}

if (field) {
  field.hidden = false;
  field.addEventListener("focus", load, { once: true });
  field.addEventListener("input", show);
  field.addEventListener("focus", () => field.value && show());
  document.addEventListener("click", (event) => event.target.closest(".finding") || hide());
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, textarea, [contenteditable]");
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      field.focus();
      field.select();
    }
    if (!event.target.closest(".finding")) return;
    const links = [...panel.querySelectorAll("a")];
    const here = links.indexOf(document.activeElement);
    if (event.key === "Escape") {
      hide();
      field.focus();
    } else if (event.key === "Enter" && event.target === field && links.length && !panel.hidden) {
      links[0].click();
    } else if (event.key === "ArrowDown" && links.length) {
      event.preventDefault();
      links[Math.min(here + 1, links.length - 1)].focus();
    } else if (event.key === "ArrowUp" && here >= 0) {
      event.preventDefault();
      (here ? links[here - 1] : field).focus();
    }
  });
}

// Code -----------------------------------------------------------------------------------------------------------------

for (const block of document.querySelectorAll(".code")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(block.dataset.typed ?? block.querySelector("code").textContent);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
  block.append(button);
}

/** Whoever has no mouse scrolls what is wider than the page by keyboard. */
function reachable() {
  for (const box of document.querySelectorAll(".code pre, .table, .pages, .contents")) {
    const scrolls = box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight + 1;
    if (scrolls) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
}
reachable();
addEventListener("resize", reachable);

// Rules ----------------------------------------------------------------------------------------------------------------

/** Rule blocks get Run and Why? from the playground, if the site has one; a browser starts no program from file://. */
if (document.body.dataset.playground && location.protocol.startsWith("http")) {
  for (const door of document.querySelectorAll('.doors a[href="playground.html"]')) door.href = `${root}playground/`;
}
const runnable = document.querySelectorAll('.code[data-language="lace"][data-facts]');
if (runnable.length && document.body.dataset.playground && location.protocol.startsWith("http")) {
  import(new URL(`${root}${document.body.dataset.playground}/docs.mjs`, document.baseURI)).then(({ attach }) => {
    for (const block of runnable) {
      const frame = attach(block, { facts: block.dataset.facts, rules: () => block.querySelector("code").textContent });
      const facts = document.createElement("details");
      const text = document.createElement("pre");
      text.textContent = block.dataset.facts;
      text.tabIndex = 0;
      facts.append(Object.assign(document.createElement("summary"), { textContent: "The facts that it is asked over" }), text);
      frame.append(facts);
    }
  });
}
