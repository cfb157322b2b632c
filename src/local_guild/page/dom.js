// Making nodes. Text always becomes a text node: nothing on this page is ever parsed as HTML.

import { language, word } from "./words.js";

/** What an element does on events, by their names; another drawing of it can put others in their place. */
export const HANDLERS = Symbol("handlers");

/** The listener of every element: asks what is to be done now. */
export function hear(event) {
  return this[HANDLERS]?.[event.type]?.call(this, event);
}

/** An element with properties (`class`, `on…`, `data-…`, attributes) and children. */
export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (key === "class") node.className = value;
    else if (key.startsWith("on")) {
      (node[HANDLERS] ??= {})[key.slice(2)] = value;
      node.addEventListener(key.slice(2), hear);
    }
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

const shapes = {
  plus: "M12 5v14M5 12h14", send: "M5 12h13M12.5 6l6 6-6 6", menu: "M4 7h16M4 12h16M4 17h16",
  reply: "M9 7l-5 5 5 5M4.5 12H14a6 6 0 0 1 6 6", edit: "M5 19l1-4L16 5l3 3L9 18z", remove: "M6 8h12M10 8V5.5h4V8M8 8l1 11h6l1-11",
  smile: "M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16M9 10v.5M15 10v.5M8.5 14c1.8 2.4 5.2 2.4 7 0",
  thread: "M6 5v8a4 4 0 0 0 4 4h8M15 14l3 3-3 3", hash: "M10 5l-2 14M16 5l-2 14M5.5 9.5h14M4.5 14.5h14", close: "M7 7l10 10M17 7L7 17",
  moon: "M19 14.5A7.5 7.5 0 0 1 9.5 5 7.5 7.5 0 1 0 19 14.5", file: "M7 4h7l4 4v12H7zM14 4v4h4", dots: "M6 12v.5M12 12v.5M18 12v.5", pin: "M9 4h6l-1 6 3 3H7l3-3zM12 13v7", down: "M12 5v13M6.5 12.5l5.5 5.5 5.5-5.5", at: "M15.5 12a3.5 3.5 0 1 1-7 0 3.5 3.5 0 0 1 7 0v1.5a2.2 2.2 0 0 0 4.4 0V12a8 8 0 1 0-3.2 6.4",
};

/** A line drawing by name; it says nothing to screen readers. */
export function icon(name) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(space, "path");
  path.setAttribute("d", shapes[name]);
  svg.append(path);
  return svg;
}

/** A button that shows a drawing and says a word. */
export function iconButton(name, label, onclick, more = {}) {
  return el("button", { class: "icon-button", type: "button", title: label, "aria-label": label, onclick, ...more }, icon(name));
}

const palette = ["#6b7f4e", "#9a6b4f", "#56748c", "#8a5f86", "#a3714c", "#8d7a3a", "#7a6a9c", "#a0605f"];

/** The colour of a name, when no role gives one: quieter than the roles' own. */
export function colorOf(name) {
  let sum = 7;
  for (const letter of name) sum = (sum * 31 + letter.codePointAt(0)) >>> 0;
  return palette[sum % palette.length];
}

/** A round picture: the image if it loads, else initials on the colour. */
export function avatar(name, color, src) {
  const words = name.trim().split(/[\s_-]+/).filter(Boolean);
  const letters = words.length > 1 ? [...words[0]][0] + [...words[1]][0] : [...name.trim()].slice(0, name === name.toUpperCase() ? 2 : 1).join("");
  const node = el("span", { class: "avatar", "aria-hidden": "true" }, letters.toUpperCase());
  node.style.setProperty("--tint", color);
  if (src) {
    node.append(el("img", { src, alt: "", onerror: (event) => event.currentTarget.remove() }));
  }
  return node;
}

/** The millisecond in which an id was made. */
export function timeOf(id) {
  return Number((BigInt(id) >> 22n) + 1420070400000n);
}

const clock = new Intl.DateTimeFormat(language, { hour: "2-digit", minute: "2-digit" });
const date = new Intl.DateTimeFormat(language, { dateStyle: "long" });
const full = new Intl.DateTimeFormat(language, { dateStyle: "full", timeStyle: "short" });

export const clockTime = (ms) => clock.format(ms);
export const fullTime = (ms) => full.format(ms);

const styles = {
  t: { timeStyle: "short" }, T: { timeStyle: "medium" }, d: { dateStyle: "short" }, D: { dateStyle: "long" },
  f: { dateStyle: "long", timeStyle: "short" }, F: { dateStyle: "full", timeStyle: "short" },
};
const relative = new Intl.RelativeTimeFormat(language, { numeric: "auto" });
const units = [["year", 31536e6], ["month", 2592e6], ["day", 864e5], ["hour", 36e5], ["minute", 6e4], ["second", 1e3]];

function fromNow(ms) {
  const away = ms - Date.now();
  const [unit, length] = units.find(([, it]) => Math.abs(away) >= it) ?? units.at(-1);
  return relative.format(Math.round(away / length), unit);
}

/** A moment as `<t:…>` names it, in the reader's zone and language. */
export function stamp(ms, style = "f") {
  if (!Number.isFinite(new Date(ms).getTime())) return el("span", { class: "stamp" }, "?");
  const text = style === "R" ? fromNow(ms) : new Intl.DateTimeFormat(language, styles[style] ?? styles.f).format(ms);
  return el("time", { class: "stamp", datetime: new Date(ms).toISOString(), title: full.format(ms), "data-from": style === "R" ? String(ms) : null }, text);
}

// "In five minutes" is not true for long.
setInterval(() => {
  for (const node of document.querySelectorAll("time[data-from]")) {
    const text = fromNow(Number(node.dataset.from));
    if (node.textContent !== text) node.textContent = text;
  }
}, 10000);

/** The day of a message, in words. */
export function dayName(ms) {
  const day = (value) => new Date(value).toDateString();
  if (day(ms) === day(Date.now())) return word("today");
  if (day(ms) === day(Date.now() - 86400000)) return word("yesterday");
  return date.format(ms);
}

/** Shows a short notice that goes by itself. */
export function toast(text) {
  const node = document.getElementById("toast");
  node.textContent = text;
  node.hidden = false;
  clearTimeout(toast.timer);
  toast.timer = setTimeout(() => { node.hidden = true; }, 4500);
}

/** Whether a link may be followed: web addresses only. */
export function safeUrl(text) {
  try {
    const url = new URL(text, location.href);
    return url.protocol === "https:" || url.protocol === "http:" ? url.href : null;
  } catch {
    return null;
  }
}
