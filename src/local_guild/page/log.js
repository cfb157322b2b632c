// The list of messages: nodes are kept while what they show is the same, and the view stays where
// the reader is: at the end if they were there, else at the message they look at.

import { dayName, el, timeOf, toast } from "./dom.js";
import { dependsOn, messageNode } from "./message.js";
import { morph } from "./morph.js";
import { whenStill } from "./pressing.js";
import { markRead, messages, nameOf, older, placeName, readMark, trim, world } from "./store.js";
import { focused, refocus, settleStop } from "./walk.js";
import { word } from "./words.js";

const scroll = document.getElementById("scroll");
const list = document.getElementById("log");
const jump = document.getElementById("jump");
const said = document.getElementById("said");

/** By message id: the node, and what it was made from. */
let made = new Map();
let mark = "0";
let pinned = true;

const nearEnd = () => scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < 60;

/** Whether a message goes under the author line of the one before. */
function joins(before, message) {
  return before && before.type !== 6 && before.type !== 18 && !message.message_reference && message.type !== 20
    && before.flags === message.flags && before.author.id === message.author.id && before.author.username === message.author.username
    && timeOf(message.id) - timeOf(before.id) < 7 * 60000;
}

function separator(key, className, text) {
  const known = made.get(key);
  const node = known?.node ?? el("li", { class: className }, el("span", {}, text));
  return { node, message: null };
}

function beginning(channel) {
  const known = made.get("start");
  if (known) return known;
  // The other channels are for reading.
  const hints = { 0: channel.position === 0 && "hint", 1: "hintDirect" };
  const hint = hints[channel.type] ? el("p", {}, word(hints[channel.type])) : null;
  return { node: el("li", { class: "start" }, el("h3", {}, placeName(channel)), el("p", {}, word("start", placeName(channel))), hint), message: null };
}

function draw() {
  const log = world.logs.get(world.current);
  if (!log) return;
  if (pinned) trim(log);
  const anchor = [...list.children].find((node) => node.dataset.id && node.offsetTop + node.offsetHeight > scroll.scrollTop);
  const anchorId = anchor?.dataset.id;
  const offset = anchor ? anchor.offsetTop - scroll.scrollTop : 0;
  const was = focused();
  const next = new Map();
  const order = [];
  const place = (key, entry) => { next.set(key, entry); order.push(entry.node); };
  if (!log.more) place("start", beginning(world.channels.get(world.current)));
  let before = null;
  let marked = false;
  for (const message of log.list) {
    const day = new Date(timeOf(message.id)).toDateString();
    if (!before || new Date(timeOf(before.id)).toDateString() !== day) {
      // Today is another day tomorrow.
      const name = dayName(timeOf(message.id));
      place(`day:${day}:${name}`, separator(`day:${day}:${name}`, "day", name));
      before = null;
    }
    if (!marked && mark !== "0" && BigInt(message.id) > BigInt(mark) && message.author.id !== world.me) {
      marked = true;
      place("new", separator("new", "new", word("newMarker")));
      before = null;
    }
    const compact = Boolean(joins(before, message));
    const extra = `${compact}|${dependsOn(message)}`;
    const known = made.get(message.id);
    const same = known && known.message === message && known.extra === extra;
    const node = () => (known ? morph(known.node, messageNode(message, compact)) : messageNode(message, compact));
    place(message.id, same ? known : { node: node(), message, extra });
    before = message;
  }
  made = next;
  const kept = new Set(order);
  for (const node of [...list.children]) if (!kept.has(node)) node.remove();
  order.forEach((node, at) => {
    if (list.children[at] !== node) list.insertBefore(node, list.children[at] ?? null);
  });
  refocus(was, next.get(was?.id)?.node);
  settleStop();
  if (pinned) scroll.scrollTop = scroll.scrollHeight;
  else if (anchorId && next.has(anchorId)) scroll.scrollTop = next.get(anchorId).node.offsetTop - offset;
  settle();
  // Where all of them are in view, nobody can scroll to earlier ones.
  if (log.more && scroll.scrollHeight <= scroll.clientHeight) older(world.current).catch(() => {});
}

function settle() {
  jump.hidden = pinned;
  if (pinned && document.visibilityState === "visible") markRead(world.current);
}

/** Shows a channel from its end. */
export async function open(id) {
  list.setAttribute("aria-busy", "true");
  said.textContent = "";
  list.replaceChildren();
  made = new Map();
  pinned = true;
  const channel = world.channels.get(id);
  const last = channel?.last_message_id;
  mark = readMark(id);
  if (last && BigInt(mark) >= BigInt(last)) mark = "0";
  await messages(id);
  if (world.current !== id) return;
  // What arrives while one looks on is not marked as new.
  draw();
  list.setAttribute("aria-busy", "false");
}

/** Draws again if it is the channel on show. */
export function refresh(id) {
  if (id !== world.current) return;
  // While one looks on, what arrives is seen: no line for it.
  if (pinned && !made.has("new")) mark = "0";
  whenStill(draw);
}

/** Tells screen readers of a new message: once, and not of every change of a card. */
export function announce(message) {
  if (message.channel_id !== world.current || message.author.id === world.me) return;
  const text = message.content || message.embeds?.[0]?.title || message.attachments?.[0]?.filename;
  if (text) said.textContent = word("said", nameOf(message.author), text.slice(0, 240));
}

/** Goes to a message; what lies before those on show is read first, within reason. */
export async function show(id) {
  const channel = world.current;
  for (let pages = 0; !made.has(id) && pages < 20 && world.logs.get(channel)?.more; pages += 1) {
    pinned = false;
    await older(channel);
    if (world.current !== channel) return;
  }
  const node = made.get(id)?.node;
  if (!node) return toast(word("tooOld"));
  pinned = false;
  node.focus({ preventScroll: true });
  node.scrollIntoView({ block: "center" });
  node.classList.add("flash");
  setTimeout(() => node.classList.remove("flash"), 1600);
  return undefined;
}

scroll.addEventListener("scroll", () => {
  pinned = nearEnd();
  settle();
  if (scroll.scrollTop < 200) older(world.current).catch(() => {});
}, { passive: true });

// A growing composer or a turned phone must not move the end out of sight; images neither.
new ResizeObserver(() => { if (pinned) scroll.scrollTop = scroll.scrollHeight; }).observe(scroll);
new ResizeObserver(() => { if (pinned) scroll.scrollTop = scroll.scrollHeight; }).observe(list);

jump.addEventListener("click", () => {
  pinned = true;
  scroll.scrollTop = scroll.scrollHeight;
  settle();
});

document.addEventListener("visibilitychange", settle);
