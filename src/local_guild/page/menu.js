// What apps offer for one message or one person: a menu beside what it is for.

import { act, Refused } from "./api.js";
import { el, toast } from "./dom.js";
import { nameOf, world } from "./store.js";
import { spoken, word } from "./words.js";

const box = document.getElementById("menu-box");
const USER = 2;
const MESSAGE = 3;
let from = null;

const of = (type) => world.commands.filter((it) => it.type === type);

/** Whether any app offers something. */
export const offers = () => world.commands.some((it) => it.type === USER || it.type === MESSAGE);

async function run(command, channel, target) {
  const bot = world.users.get(command.application_id)?.username;
  try {
    await act("context", { user: world.me, channel, command: command.name, type: command.type, target, bot });
  } catch (error) {
    toast(error instanceof Refused ? error.message : String(error));
  }
}

function group(label, commands, channel, target) {
  if (commands.length === 0) return null;
  return el("div", { role: "group", "aria-label": label }, el("p", { class: "menu-head", "aria-hidden": "true" }, label), commands.map((command) =>
    el("button", {
      type: "button", role: "menuitem", tabindex: "-1", "data-testid": `context-${command.name}`,
      onclick: () => { close(true); run(command, channel, target); },
    }, el("span", {}, spoken(command, "name")), el("small", {}, nameOf(world.users.get(command.application_id) ?? { username: "?" })))));
}

const items = () => [...box.querySelectorAll("[role=menuitem]")];

/** Shuts it; the focus goes back to where it was opened. */
function close(back) {
  if (box.hidden) return;
  box.hidden = true;
  box.replaceChildren();
  if (back) from?.focus?.({ preventScroll: true });
  from = null;
}

function open(event, groups) {
  const found = groups.filter(Boolean);
  if (found.length === 0) return false;
  event.preventDefault();
  event.stopPropagation();
  close(false);
  from = document.activeElement;
  box.setAttribute("aria-label", word("apps"));
  box.replaceChildren(...found);
  box.hidden = false;
  // At the pointer; opened by a key, at what has the focus.
  const at = event.target.getBoundingClientRect();
  const pointed = event.clientX > 0 || event.clientY > 0;
  const left = pointed ? event.clientX : at.left;
  const top = pointed ? event.clientY : at.bottom;
  box.style.left = `${Math.max(8, Math.min(left, innerWidth - box.offsetWidth - 8))}px`;
  box.style.top = `${Math.max(8, Math.min(top, innerHeight - box.offsetHeight - 8))}px`;
  items()[0].focus();
  return true;
}

/** Someone as a member: personas and people who left are none. */
const member = (author) => (world.users.has(author.id) ? author : null);

const onPerson = (author, channel) => member(author) && group(word("onPerson", nameOf(author)), of(USER), channel, author.id);

/** The menu of a message: what can be done with it, and with who wrote it. */
export function messageMenu(event, message) {
  return open(event, [group(word("onMessage"), of(MESSAGE), message.channel_id, message.id), onPerson(message.author, message.channel_id)]);
}

/** The menu of a person, who may stand anywhere on the page. */
export function personMenu(event, author) {
  return open(event, [onPerson(author, world.current)]);
}

box.addEventListener("keydown", (event) => {
  const all = items();
  const now = all.indexOf(document.activeElement);
  const next = { ArrowDown: (now + 1) % all.length, ArrowUp: (now + all.length - 1) % all.length, Home: 0, End: all.length - 1 }[event.key];
  if (next !== undefined) all[next].focus();
  else if (event.key === "Escape" || event.key === "Tab") close(true);
  else return;
  event.preventDefault();
  event.stopPropagation();
});

addEventListener("pointerdown", (event) => { if (!box.contains(event.target)) close(false); }, true);
document.getElementById("scroll").addEventListener("wheel", () => close(false), { passive: true });
addEventListener("resize", () => close(false));
