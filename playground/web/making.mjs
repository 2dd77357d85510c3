// Elements out of values. Text goes in as text: nothing that a record or a link holds becomes markup.
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const byId = (id) => document.getElementById(id);

export const badge = (text, kind = "") => make("span", { class: `badge ${kind}` }, text);

export function bytes(count) {
  return count < 1000 ? `${count} B` : `${(count / 1000).toFixed(1)} kB`;
}

export function short(hash) {
  return `${hash.slice(0, 8)}…`;
}
