// Channels with the rooms under them, direct conversations, and who one speaks as.

import { avatar, el, icon } from "./dom.js";
import { post } from "./api.js";
import { picture } from "./message.js";
import { children } from "./morph.js";
import { personMenu } from "./menu.js";
import { whenStill } from "./pressing.js";
import { doing, isUnread, nameOf, tint, world } from "./store.js";
import { word } from "./words.js";

const box = document.getElementById("channels");
const select = document.getElementById("me-select");
const seat = document.getElementById("me-avatar");
const opener = document.getElementById("menu");

/** Rooms shown under a channel beside those with something new; older ones are reached through their message. */
const shownRooms = 12;

/** A name, and under it what its owner is doing. */
function named(text, about) {
  return el("span", { class: "channel-name" }, text, about && el("small", { class: "doing" }, about));
}

function entry(channel, sign, text, testid, className = "channel", about = "", oncontextmenu = null) {
  const unread = channel.id !== world.current && isUnread(channel);
  const mentions = world.mentioned.get(channel.id) ?? 0;
  return el("li", { "data-key": testid },
    el("a", {
      class: [className, unread && "unread"].filter(Boolean).join(" "), href: `#${channel.id}`, "data-testid": testid,
      "aria-current": channel.id === world.current ? "page" : undefined, oncontextmenu,
    }, sign, named(text, about),
    mentions > 0 && channel.id !== world.current ? el("span", { class: "badge" }, String(mentions)) : null,
    unread && el("span", { class: "hidden" }, word("unread"))));
}

function rooms(parent) {
  const found = [...world.channels.values()].filter((it) => it.parent_id === parent.id && !it.thread_metadata?.archived);
  const here = world.channels.get(world.current);
  found.sort((a, b) => (BigInt(b.id) > BigInt(a.id) ? 1 : -1));
  const shown = found.filter((it, at) => at < shownRooms || isUnread(it) || world.mentioned.has(it.id));
  if (here?.parent_id === parent.id && !shown.includes(here)) shown.push(here);
  if (shown.length === 0) return null;
  return el("ul", { class: "rooms", "aria-label": word("rooms") }, shown.map((room) => entry(room, icon("thread"), room.name, `thread-${room.id}`, "channel room")));
}

function draw() {
  const focused = box.contains(document.activeElement) ? document.activeElement.dataset.testid : null;
  const texts = [...world.channels.values()].filter((it) => it.type === 0).sort((a, b) => a.position - b.position);
  const directs = [...world.channels.values()].filter((it) => it.type === 1);
  const bots = [...world.users.values()].filter((it) => it.bot);
  const open = new Map(directs.map((it) => [it.recipients[0]?.id, it]));
  const people = bots.map((bot) => {
    const shown = world.presences.get(bot.id)?.status;
    const about = doing(bot);
    const sign = el("span", { class: shown ? `seat ${shown}` : "seat" }, picture(bot));
    const channel = open.get(bot.id);
    const context = (event) => { if (!event.shiftKey) personMenu(event, bot); };
    if (channel) return entry(channel, sign, nameOf(bot), `dm-${bot.username}`, "channel", about, context);
    const begin = async () => { location.hash = (await post("dm", { user: world.me, bot: bot.id })).id; };
    return el("li", { "data-key": bot.id }, el("button", { type: "button", class: "channel", "data-testid": `dm-${bot.username}`, onclick: begin, oncontextmenu: context }, sign, named(nameOf(bot), about)));
  });
  children(box, [
    el("section", {}, el("h2", {}, word("channels")),
      el("ul", {}, texts.map((it) => {
        const item = entry(it, icon("hash"), it.name, `channel-${it.name}`);
        const inner = rooms(it);
        if (inner) item.append(inner);
        return item;
      }))),
    el("section", {}, el("h2", {}, word("direct")), el("ul", {}, people))]);
  if (focused && !box.contains(document.activeElement)) box.querySelector(`[data-testid="${CSS.escape(focused)}"]`)?.focus();
  const unread = [...world.channels.values()].filter((it) => it.id !== world.current && isUnread(it)).length;
  const here = world.channels.get(world.current);
  opener.classList.toggle("unread", unread > 0);
  document.title = `${unread > 0 ? `(${unread}) ` : ""}${here?.name || "teams"} · teams`;
}

/** Draws the list once nothing is pressed. Focus stays on the same entry. */
export const drawSidebar = () => whenStill(draw);

/** Fills the choice of people, and calls back when another is chosen. */
export function drawPeople(onchange) {
  const people = [...world.users.values()].filter((it) => !it.bot);
  select.replaceChildren(...people.map((it) => el("option", { value: it.id, selected: it.id === world.me }, nameOf(it))));
  select.onchange = () => onchange(select.value);
  const me = world.users.get(world.me);
  if (me) seat.replaceChildren(avatar(nameOf(me), tint(me)));
}
