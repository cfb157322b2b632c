// Writing: the box, files, replies, edits, and suggestions for names and commands.

import { nonce, post, Refused, upload } from "./api.js";
import { commandsFor, fill, filling, leave, optionsIn, run, written } from "./commands.js";
import { avatar, el, iconButton, toast } from "./dom.js";
import { picture } from "./message.js";
import { nameOf, placeName, tint, world } from "./store.js";
import { word } from "./words.js";

const form = document.getElementById("form");
const line = document.getElementById("box");
const box = document.getElementById("composer");
const picker = document.getElementById("file");
const tray = document.getElementById("files");
const context = document.getElementById("context");
const menu = document.getElementById("suggestions");

const largest = 20 * 1024 * 1024;
/** Characters that fit into a message. */
const longest = 2000;

/** What is not sent yet, by channel; it outlives a page that is loaded anew. */
const drafts = new Map(JSON.parse(sessionStorage.getItem("drafts") ?? "[]"));
/** What a channel holds beside its text while another one is open: files, the message replied to, and the one that is
 * changed with what stands there by now. */
const begun = new Map();
/** The channel whose words are in the box, and who writes. */
let here = null;
let writer = null;
/** What stood in the box before a message was taken up for changing. */
let before = "";
let files = [];
let reply = null;
let editing = null;
let choices = [];
let chosen = 0;
let lastTyping = 0;
/** What was sent and not answered: sent once more, it is the same message. */
let unanswered = null;

const complain = (error) => toast(error instanceof Refused ? error.message : String(error));

function keep(channel, text) {
  if (text) drafts.set(channel, text);
  else drafts.delete(channel);
  try {
    sessionStorage.setItem("drafts", JSON.stringify([...drafts]));
  } catch {
    // There is no room for it; it is here all the same.
  }
}

const keepBox = () => here && keep(here, editing ? before : box.value);

function fit() {
  box.style.height = "auto";
  box.style.height = `${Math.min(box.scrollHeight, 220)}px`;
}

function drawContext() {
  context.replaceChildren();
  context.hidden = !reply && !editing;
  if (context.hidden) return;
  const text = editing ? word("editing") : word("replying", nameOf(reply.author));
  context.append(el("span", {}, text), iconButton("close", word("cancel"), cancel));
}

function drawFiles() {
  tray.hidden = files.length === 0;
  tray.replaceChildren(...files.map((file) =>
    el("span", { class: "chip" }, file.name || "image.png", iconButton("close", word("removeFile", file.name), () => {
      files = files.filter((it) => it !== file);
      drawFiles();
    }))));
}

function add(list) {
  for (const file of list) {
    if (file.size > largest) toast(word("tooBig"));
    else if (files.length < 10) files.push(file);
  }
  drawFiles();
  box.focus();
}

function cancel() {
  if (editing) box.value = before;
  before = "";
  reply = null;
  editing = null;
  drawContext();
  fit();
  box.focus();
}

/** Begins a reply. */
export function startReply(message) {
  cancel();
  reply = message;
  drawContext();
}

/** Begins to change one's own message. */
export function startEdit(message) {
  cancel();
  before = box.value;
  editing = message;
  box.value = toNames(message.content);
  drawContext();
  fit();
}

/** Moves to another channel: what was begun here waits. Where the same one is shown anew, it goes on. */
export function moved(channel) {
  if (here === channel.id && writer === world.me) return;
  leave();
  keepBox();
  if (here && writer === world.me) begun.set(here, { files, reply, editing, changed: box.value });
  // What somebody else began is not this one's to send.
  if (writer !== world.me) begun.clear();
  here = channel.id;
  writer = world.me;
  const kept = begun.get(here) ?? { files: [], reply: null, editing: null };
  begun.delete(here);
  ({ files, reply, editing } = kept);
  const draft = drafts.get(here) ?? "";
  before = editing ? draft : "";
  box.value = editing ? kept.changed : draft;
  const place = word("message", placeName(channel));
  box.placeholder = place;
  box.setAttribute("aria-label", place);
  drawContext();
  drawFiles();
  close();
  fit();
}

/** Everything that can be addressed: roles first, then bots and people without a role of that name. */
function addressable() {
  const roles = [...world.roles.values()].filter((it) => it.mentionable).map((it) => ({
    name: it.name, code: `<@&${it.id}>`, color: `#${it.color.toString(16).padStart(6, "0")}`,
  }));
  const taken = new Set(roles.map((it) => it.name));
  const users = [...world.users.values()].filter((it) => !taken.has(it.username)).map((it) => ({
    name: it.username, code: `<@${it.id}>`, color: tint(it),
  }));
  return [...roles, ...users];
}

const literal = (name) => name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** Changes a text but for its code, in which names are words like any other. */
function outsideCode(text, change) {
  let made = "";
  let from = 0;
  for (const code of text.matchAll(/(?<!`)(`+)(?!`)[\s\S]*?(?<!`)\1(?!`)/g)) {
    made += change(text.slice(from, code.index)) + code[0];
    from = code.index + code[0].length;
  }
  return made + change(text.slice(from));
}

const toCodes = (text) => outsideCode(text, (words) => addressable().sort((a, b) => b.name.length - a.name.length).reduce(
  (result, it) => result.replace(new RegExp(`(^|[^\\w<@])@${literal(it.name)}(?![\\w-])`, "gi"), `$1${it.code}`), words));

const toNames = (text) => outsideCode(text, (words) => addressable().reduce((result, it) => result.replaceAll(it.code, `@${it.name}`), words));

/** The word before the caret that suggestions are for. */
function asked() {
  const before = box.value.slice(0, box.selectionStart);
  const name = /(?:^|\s)@([\w-]*)$/.exec(before);
  if (name) return { kind: "name", part: name[1].toLowerCase(), from: before.length - name[1].length - 1 };
  const command = /^\/(\S*(?: \S*)?)$/.exec(before);
  return command ? { kind: "command", part: command[1].toLowerCase(), from: 0 } : null;
}

function close() {
  choices = [];
  menu.hidden = true;
  menu.replaceChildren();
  box.removeAttribute("aria-activedescendant");
}

function suggest() {
  const question = asked();
  if (!question) return close();
  choices = question.kind === "name"
    ? addressable().filter((it) => it.name.startsWith(question.part)).slice(0, 12).map((it) => ({ text: `@${it.name} `, label: it.name, key: it.name, sign: avatar(it.name, it.color) }))
    : commandsFor(question.part).map((it) => ({ entry: it, text: `/${it.name} `, label: `/${it.name}`, key: `/${it.plain}`, hint: it.about, sign: picture(it.bot) }));
  chosen = Math.min(chosen, Math.max(choices.length - 1, 0));
  menu.hidden = choices.length === 0;
  menu.setAttribute("aria-label", word(question.kind === "name" ? "mentions" : "commands"));
  menu.replaceChildren(...choices.map((it, at) => el("li", {
    id: `choice-${at}`, role: "option", "aria-selected": String(at === chosen), "data-testid": `choice-${it.key}`,
    onmousedown: (event) => { event.preventDefault(); take(at); },
  }, it.sign, el("span", {}, it.label), it.hint && el("small", {}, it.hint))));
  if (choices.length === 0) return box.removeAttribute("aria-activedescendant");
  box.setAttribute("aria-activedescendant", `choice-${chosen}`);
  menu.children[chosen].scrollIntoView({ block: "nearest" });
  return undefined;
}

function take(at) {
  const question = asked();
  if (!question) return;
  const { entry, text } = choices[at];
  box.setRangeText(text, question.from, box.selectionStart, "end");
  close();
  box.focus();
  if (entry && entry.options.length > 0) begin(entry, box.value.slice(text.length));
}

/** Shows the fields of a command where one writes; what stood behind it stays. */
function begin(entry, behind) {
  const attached = files;
  const channel = here;
  box.value = behind;
  files = [];
  drawFiles();
  line.hidden = true;
  fill(entry, attached, channel, (given) => {
    line.hidden = filling();
    if (given) {
      restore({ ...given, reply: null }, channel);
      if (given.nonce) unanswered = { ...given, text: given.text.trim(), channel, reply: null };
    }
    keepBox();
    fit();
    box.focus();
  });
}

/** Nothing that was written is lost, and nothing that was written meanwhile. */
function restore(pending, channel) {
  const joined = (text) => [pending.text, text].filter(Boolean).join("\n");
  if (here !== channel) {
    const kept = begun.get(channel) ?? { files: [], reply: null, editing: null };
    begun.set(channel, { ...kept, reply: kept.reply ?? pending.reply, files: [...pending.files, ...kept.files] });
    return keep(channel, joined(drafts.get(channel)));
  }
  files = [...pending.files, ...files];
  if (editing) before = joined(before);
  else {
    box.value = joined(box.value);
    reply ??= pending.reply;
  }
  keepBox();
  drawFiles();
  drawContext();
  return fit();
}

async function send() {
  const text = box.value.trim();
  const channel = here;
  const length = [...toCodes(text)].length;
  if (length > longest && !written(text)) throw new Refused(word("tooLong", length, longest));
  if (editing) {
    const message = editing;
    cancel();
    if (!text) return;
    try {
      await post("edit", { user: world.me, channel: message.channel_id, message: message.id, content: toCodes(text) });
    } catch (error) {
      if (world.current === message.channel_id && !editing) {
        startEdit(message);
        box.value = text;
        fit();
      } else restore({ text, files: [], reply: null }, message.channel_id);
      throw error;
    }
    return;
  }
  if (!text && files.length === 0) return;
  const command = written(text);
  // What a command cannot do without is asked for in its fields.
  if (command && !command.rest && command.entry.options.some((it) => it.required)) return begin(command.entry, "");
  const same = (it) => it.text === text && it.channel === channel && it.reply === reply && it.files.length === files.length && it.files.every((file, at) => file === files[at]);
  const again = unanswered && same(unanswered);
  const pending = { text: box.value, files, reply, nonce: again ? unanswered.nonce : nonce() };
  unanswered = null;
  box.value = "";
  files = [];
  reply = null;
  lastTyping = 0;
  keepBox();
  drawFiles();
  drawContext();
  close();
  fit();
  try {
    if (command) {
      await run(command.entry, optionsIn(command.entry, command.rest), pending.files, channel, pending.nonce);
      return;
    }
    const attachments = [];
    for (const file of pending.files) attachments.push((await upload(file)).id);
    await post("say", { user: world.me, channel, content: toCodes(text), reply_to: pending.reply?.id, attachments, nonce: pending.nonce });
  } catch (error) {
    if (!(error instanceof Refused)) unanswered = { ...pending, channel, text };
    restore(pending, channel);
    throw error;
  }
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  send().catch(complain);
});

box.addEventListener("keydown", (event) => {
  // While a Korean or Japanese syllable is being composed, Enter belongs to the input method.
  if (event.isComposing || event.keyCode === 229) return;
  if (choices.length > 0) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      chosen = (chosen + step + choices.length) % choices.length;
      return suggest();
    }
    if (event.key === "Enter" || event.key === "Tab") {
      event.preventDefault();
      return take(chosen);
    }
    if (event.key === "Escape") return close();
  }
  // The keyboard of a phone has no other key for a new line.
  if (event.key === "Enter" && !event.shiftKey && !matchMedia("(pointer: coarse)").matches) {
    event.preventDefault();
    form.requestSubmit();
  } else if (event.key === "Escape") {
    cancel();
  } else if (event.key === "ArrowUp" && !box.value) {
    const mine = world.logs.get(world.current)?.list.findLast((it) => it.author.id === world.me);
    if (mine) {
      event.preventDefault();
      startEdit(mine);
    }
  }
});

box.addEventListener("input", () => {
  unanswered = null;
  keepBox();
  fit();
  chosen = 0;
  suggest();
  if (box.value && !box.value.startsWith("/") && Date.now() - lastTyping > 8000) {
    lastTyping = Date.now();
    post("typing", { user: world.me, channel: world.current }).catch(() => {});
  }
});
box.addEventListener("blur", close);
box.addEventListener("paste", (event) => {
  if (event.clipboardData.files.length > 0) {
    event.preventDefault();
    add(event.clipboardData.files);
  }
});

document.getElementById("attach").addEventListener("click", () => picker.click());
picker.addEventListener("change", () => {
  add(picker.files);
  picker.value = "";
});
const main = document.getElementById("main");
main.addEventListener("dragover", (event) => {
  event.preventDefault();
  main.classList.add("dropping");
});
main.addEventListener("dragleave", () => main.classList.remove("dropping"));
main.addEventListener("drop", (event) => {
  event.preventDefault();
  main.classList.remove("dropping");
  add(event.dataTransfer.files);
});
