// What the page knows. Events change it; views are told which part changed.

import { get } from "./api.js";
import { colorOf } from "./dom.js";

export const world = {
  me: null, guild: null, users: new Map(), roles: new Map(), channels: new Map(), commands: [],
  /** By the id of a bot: what it shows of itself. */
  presences: new Map(),
  /** By channel id: messages, oldest first, and whether there are older ones. */
  logs: new Map(), typing: new Map(), mentioned: new Map(), current: null, waiting: new Set(),
};

const listeners = new Set();
export const listen = (fn) => listeners.add(fn);
const changed = (what, channel) => { for (const fn of listeners) fn(what, channel); };

const later = (a, b) => !b || (a && BigInt(a) > BigInt(b));

/** Reads the whole picture as one person. Returns where to go on following. */
export async function load(user) {
  const state = await get(`state?user=${user}`);
  world.me = state.me;
  world.guild = state.guild;
  world.users = new Map(state.users.map((it) => [it.id, it]));
  world.roles = new Map(state.guild.roles.map((it) => [it.id, it]));
  world.channels = new Map(state.channels.map((it) => [it.id, it]));
  world.commands = state.commands;
  world.presences = new Map(Object.entries(state.presences ?? {}));
  world.logs.clear();
  world.typing.clear();
  world.waiting.clear();
  // What was there before somebody's first visit is not new to them; what was opened between two visits is.
  const visited = `visited:${world.guild.id}:${world.me}`;
  const isFirst = localStorage.getItem(visited) === null;
  for (const channel of state.channels) {
    if (localStorage.getItem(readKey(channel.id)) === null) localStorage.setItem(readKey(channel.id), (isFirst && channel.last_message_id) || "0");
  }
  localStorage.setItem(visited, "1");
  return `${state.epoch}.${state.feed}`;
}

/** Counts readings of people, and events about what they offer and show. */
let [reads, news] = [0, 0];

/** Reads anew who is here and what they offer. */
async function readPeople() {
  const [mine, me, before] = [(reads += 1), world.me, news];
  const state = await get(`state?user=${me}`);
  if (mine !== reads || me !== world.me) return undefined;
  // What came as an event meanwhile is newer.
  if (before !== news) return readPeople();
  world.guild = state.guild;
  world.users = new Map(state.users.map((it) => [it.id, it]));
  world.roles = new Map(state.guild.roles.map((it) => [it.id, it]));
  world.commands = state.commands;
  world.presences = new Map(Object.entries(state.presences ?? {}));
  changed("people");
  changed("channels");
  changed("log", world.current);
  return undefined;
}

const readKey = (id) => `read:${world.guild.id}:${world.me}:${id}`;
const lastRead = (id) => localStorage.getItem(readKey(id)) ?? "0";

/** Whether a channel has messages after the one read last. */
export function isUnread(channel) {
  return later(channel.last_message_id, lastRead(channel.id)) && channel.last_message_id !== null;
}

/** Where the "new" line stands when a channel is opened. */
export const readMark = (id) => lastRead(id);

/** Marks a channel as read to its end. */
export function markRead(id) {
  const channel = world.channels.get(id);
  if (!channel || (!isUnread(channel) && !world.mentioned.has(id))) return;
  localStorage.setItem(readKey(id), channel.last_message_id ?? "0");
  world.mentioned.delete(id);
  changed("channels");
}

/** The messages of a channel, read from the server the first time. */
export async function messages(id) {
  const known = world.logs.get(id);
  if (known) {
    await known.ready;
    return known;
  }
  // In place before the answer comes, so that events on the way are not lost.
  const log = { list: [], more: true, reading: true };
  world.logs.set(id, log);
  const read = async () => {
    const found = await get(`messages?user=${world.me}&channel=${id}&limit=50`);
    const live = log.list.splice(0);
    log.more = found.length === 50;
    // What came as an event meanwhile is newer than what was read.
    for (const message of [...found.reverse(), ...live]) if (!dismissed.has(message.id)) insert(log, message);
    log.reading = false;
  };
  log.ready = read();
  try {
    await log.ready;
  } catch (error) {
    world.logs.delete(id);
    throw error;
  }
  return log;
}

/** Reads what lies before the oldest message known. */
export async function older(id) {
  const log = world.logs.get(id);
  if (!log?.more || log.list.length === 0) return;
  const read = async () => {
    const found = await get(`messages?user=${world.me}&channel=${id}&limit=50&before=${log.list[0].id}`);
    log.more = found.length === 50;
    for (const message of found) if (!dismissed.has(message.id)) insert(log, message);
    changed("log", id);
  };
  // Whoever asks meanwhile waits for the same.
  log.loading ??= read().finally(() => {
    log.loading = null;
  });
  await log.loading;
}

/** The flag of an answer that is still to come. */
export const LOADING = 1 << 7;

/** Private answers put away; they do not come back when the page is read again. */
const dismissed = new Set(JSON.parse(localStorage.getItem("dismissed") ?? "[]"));

/** Puts a private answer away. */
export function dismiss(message) {
  dismissed.add(message.id);
  localStorage.setItem("dismissed", JSON.stringify([...dismissed].slice(-200)));
  const log = world.logs.get(message.channel_id);
  if (log) log.list = log.list.filter((it) => it.id !== message.id);
  changed("log", message.channel_id);
}

function insert(log, message) {
  const at = log.list.findIndex((it) => it.id === message.id);
  if (at >= 0) {
    // The feed speaks to everyone, so it cannot say which reactions are mine.
    const mine = new Set((log.list[at].reactions ?? []).filter((it) => it.me).map((it) => it.emoji.name));
    for (const reaction of message.reactions ?? []) reaction.me ||= mine.has(reaction.emoji.name);
    log.list[at] = message;
    return;
  }
  let place = log.list.length;
  while (place > 0 && later(log.list[place - 1].id, message.id)) place -= 1;
  log.list.splice(place, 0, message);
}

/** Messages of a channel that are kept at its end, and how many more there may be before it is cut. */
const [kept, slack] = [200, 200];

/** Lets go of what is far above: it is read again when one gets there. */
export function trim(log) {
  if (log.list.length <= kept + slack || log.reading || log.loading) return;
  log.list.splice(0, log.list.length - kept);
  log.more = true;
}

function react(log, event, added) {
  const at = log.list.findIndex((it) => it.id === event.message_id);
  if (at < 0) return;
  const old = log.list[at];
  const reactions = (old.reactions ?? []).map((it) => ({ ...it }));
  let found = reactions.find((it) => it.emoji.name === event.emoji.name);
  if (!found) {
    found = { emoji: event.emoji, count: 0, me: false };
    reactions.push(found);
  }
  found.count += added ? 1 : -1;
  if (event.user_id === world.me) found.me = added;
  log.list[at] = { ...old, reactions: reactions.filter((it) => it.count > 0) };
}

/** Takes in an event. */
export function apply({ t, d }) {
  const log = world.logs.get(d?.channel_id);
  switch (t) {
    case "MESSAGE_CREATE": {
      const channel = world.channels.get(d.channel_id);
      if (channel) {
        if (later(d.id, channel.last_message_id)) channel.last_message_id = d.id;
        if ("message_count" in channel) channel.message_count += 1;
      }
      const mine = d.author.id === world.me;
      if (!mine && (d.mention_everyone || d.mentions.some((it) => it.id === world.me))) {
        world.mentioned.set(d.channel_id, (world.mentioned.get(d.channel_id) ?? 0) + 1);
      }
      if (mine) localStorage.setItem(readKey(d.channel_id), d.id);
      if (log) insert(log, d);
      if (log && d.channel_id !== world.current) trim(log);
      // A webhook speaks for a bot: whoever was typing has now spoken.
      const typing = world.typing.get(d.channel_id);
      typing?.delete(d.author.id);
      if (d.webhook_id) typing?.clear();
      changed("typing", d.channel_id);
      changed("said", d);
      changed("log", d.channel_id);
      if (channel?.parent_id) changed("log", channel.parent_id);
      changed("channels");
      break;
    }
    case "MESSAGE_UPDATE": {
      // What was deferred is said now.
      const before = log?.list.find((it) => it.id === d.id);
      if (before?.flags & LOADING && !(d.flags & LOADING)) changed("said", d);
      // Only what is known can change: the rest is read when one gets there.
      if (log && !dismissed.has(d.id) && (log.reading || before)) insert(log, d);
      changed("log", d.channel_id);
      break;
    }
    case "MESSAGE_DELETE":
      if (log) log.list = log.list.filter((it) => it.id !== d.id);
      changed("log", d.channel_id);
      break;
    case "MESSAGE_DELETE_BULK":
      if (log) log.list = log.list.filter((it) => !d.ids.includes(it.id));
      changed("log", d.channel_id);
      break;
    case "MESSAGE_REACTION_ADD":
    case "MESSAGE_REACTION_REMOVE":
      if (log) react(log, d, t === "MESSAGE_REACTION_ADD");
      changed("log", d.channel_id);
      break;
    case "MESSAGE_REACTION_REMOVE_ALL":
    case "MESSAGE_REACTION_REMOVE_EMOJI":
      if (log) {
        const stays = (it) => t === "MESSAGE_REACTION_REMOVE_EMOJI" && it.emoji.name !== d.emoji.name;
        log.list = log.list.map((it) => (it.id === d.message_id ? { ...it, reactions: (it.reactions ?? []).filter(stays) } : it));
      }
      changed("log", d.channel_id);
      break;
    case "GUILD_MEMBER_ADD":
    case "GUILD_MEMBER_UPDATE":
    case "GUILD_MEMBER_REMOVE":
    case "GUILD_ROLE_CREATE":
    case "GUILD_ROLE_UPDATE":
    case "GUILD_ROLE_DELETE":
      // Where the server is gone, the page is read whole once it is back.
      readPeople().catch(() => {});
      break;
    case "TYPING_START": {
      if (d.user_id === world.me) break;
      const typing = world.typing.get(d.channel_id) ?? new Map();
      typing.set(d.user_id, Date.now() + 10000);
      world.typing.set(d.channel_id, typing);
      changed("typing", d.channel_id);
      break;
    }
    case "CHANNEL_CREATE":
    case "CHANNEL_UPDATE":
    case "THREAD_CREATE":
    case "THREAD_UPDATE":
      if (t !== "CHANNEL_UPDATE" && t !== "THREAD_UPDATE") localStorage.setItem(readKey(d.id), "0");
      // A direct conversation is named after the other side.
      if (d.recipients) d.recipients = d.recipients.filter((it) => it.id !== world.me);
      world.channels.set(d.id, d);
      changed("channels");
      if (d.parent_id) changed("log", d.parent_id);
      break;
    case "CHANNEL_DELETE":
    case "THREAD_DELETE":
      world.channels.delete(d.id);
      world.logs.delete(d.id);
      changed("channels");
      break;
    case "INTERACTION_DONE":
    case "INTERACTION_FAILED":
      if (t === "INTERACTION_FAILED") changed("failed", d);
      changed("log", d.channel_id);
      break;
    case "COMMANDS":
      news += 1;
      world.commands = d.commands;
      changed("log", world.current);
      break;
    case "CHOICES":
      changed("choices", d);
      break;
    case "PRESENCE_UPDATE":
      news += 1;
      world.presences.set(d.user.id, d);
      changed("channels");
      break;
    case "DIALOG":
      changed("dialog", d);
      break;
    default:
      break;
  }
}

/** Tells views that a part changed by this side's doing. */
export const touch = (what, channel) => changed(what, channel);

const hex = (number) => `#${number.toString(16).padStart(6, "0")}`;

/** The colour of an author: that of their role, of the role they are named after, or of the name. */
export function tint(author) {
  const user = world.users.get(author.id);
  for (const id of user?.roles ?? []) if (world.roles.get(id)?.color) return hex(world.roles.get(id).color);
  const first = author.username.toLowerCase().split(/[\s·(]/)[0];
  for (const role of world.roles.values()) if (role.color && role.name === first) return hex(role.color);
  return author.username === "teams" ? "#2f7d6b" : colorOf(author.username);
}

/** The name that people see. */
export const nameOf = (author) => author.global_name || author.username;

/** What a bot says that it is doing; empty when it says nothing. */
export function doing(bot) {
  const shown = world.presences.get(bot.id)?.activities?.[0];
  return shown ? (shown.type === 4 && shown.state) || shown.name : "";
}

/** The name of a channel with its sign. */
export function placeName(channel) {
  if (!channel) return "";
  if (channel.type === 1) return `@${nameOf(channel.recipients[0] ?? { username: "?" })}`;
  return channel.type === 0 ? `#${channel.name}` : channel.name;
}
